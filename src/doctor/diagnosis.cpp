#include "doctor/diagnosis.h"

#include <fmt/format.h>

#include "base/text/plural.h"

namespace brisk {

std::string Diagnosis::summary() const {
  int64_t kept = 0;
  for (size_t i = 1; i < ladder.size(); ++i) kept += ladder[i].kept ? 1 : 0;
  if (kept == 0 && interrupted) return "interrupted before anything faster was found";
  if (kept == 0 && findings.empty()) return "nothing worth changing";
  if (kept == 0 && ladder.size() <= 1) return "nothing to try within what it may change; see the findings";
  if (kept == 0) return "nothing that was tried makes it faster";
  double cumulative = 1;
  for (const Rung& rung : ladder) cumulative = rung.kept && rung.cumulative > 0 ? rung.cumulative : cumulative;
  return fmt::format("{:.2f}x faster with {}", cumulative, plural(kept, "change"));
}

}  // namespace brisk
