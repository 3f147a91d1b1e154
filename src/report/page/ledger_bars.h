// The ledger as HTML: a bar of coloured phases for the run and for each epoch, and a table of the whole run.
//
//   const std::vector<LedgerBar> bars = {{"whole run", "3m 12s", run.ledger}};
//   body += ledger_bars_html(bars) + ledger_table_html(run.ledger, run.step);
#pragma once

#include <string>
#include <vector>

#include "report/read/run_record.h"

namespace brisk {

struct LedgerBar {
  std::string name;    // plain text, left of the bar
  std::string detail;  // right of it
  PhaseSeconds ledger;
};

// All bars have the full width: shares are compared, and the detail says of how much.
std::string ledger_bars_html(const std::vector<LedgerBar>& bars);

// The names of the phases that take 0.5 % or more of some bar.
std::string ledger_legend_html(const std::vector<LedgerBar>& bars);

std::string ledger_table_html(const PhaseSeconds& ledger, double steps);

}  // namespace brisk
