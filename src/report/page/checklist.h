// What a reader checks before believing a result: a line each with a tick, a cross or, where it is not known, a dash,
// and the numbers. Pages end with it.
//
//   std::vector<Check> checks = {check("the loss fell", last < first, fmt::format("from {} to {}", first, last))};
//   body += checklist_html(checks);
//   for (const Check& check : checks) fmt::print("{} {}  {}\n", mark_text(check.mark), check.what, check.numbers);
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "report/page/html.h"
#include "report/read/run_record.h"

namespace brisk {

struct Check {
  enum class Mark : uint8_t { good, bad, unknown };
  std::string what;     // "the loss fell"
  std::string numbers;  // "from 9.0104 to 3.2210"
  Mark mark = Mark::unknown;
};

Check check(std::string what, bool good, std::string numbers);
Check unknown_check(std::string what, std::string numbers);

std::string mark_text(Check::Mark mark);  // "✓", "✗", "–"

Html checklist_html(const std::vector<Check>& checks);

// Of a run: its epochs, loss, samples, memory, divergence, quality and GPU. Empty of a model that was not trained here.
std::vector<Check> run_checks(const RunRecord& run);

}  // namespace brisk
