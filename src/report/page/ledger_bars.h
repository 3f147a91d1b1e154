// The ledger as HTML: a bar of coloured phases for the run and for each epoch, and a table of the whole run.
//
//   const std::vector<LedgerBar> bars = {{"whole run", "3m 12s", run.ledger}};
//   body += ledger_bars_html(bars) + ledger_table_html(run.ledger, run.step);
#pragma once

#include <string>
#include <vector>

#include "report/page/html.h"
#include "report/read/run_record.h"

namespace brisk {

struct LedgerBar {
  std::string name;    // left of the bar
  std::string detail;  // right of it
  PhaseSeconds ledger;
};

// All bars have the full width: shares are compared, and the detail says of how much.
Html ledger_bars_html(const std::vector<LedgerBar>& bars);

// The names of the phases that take 0.5 % or more of some bar.
Html ledger_legend_html(const std::vector<LedgerBar>& bars);

// "forward: linear layers"; a phase that this brisk does not know is named as it is written.
std::string phase_words(const std::string& phase);

Html ledger_table_html(const PhaseSeconds& ledger, double steps);

}  // namespace brisk
