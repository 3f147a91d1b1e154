#include "train/run/rank_watch.h"

#include <algorithm>

#include "base/machine/process.h"
#include "base/terminal/terminal.h"
#include "comm/communicator.h"

namespace brisk {

double work_seconds(const Ledger::Totals& totals) {
  double seconds = totals.seconds(Phase::copy) + totals.seconds(Phase::clipping) + totals.seconds(Phase::optimizer);
  for (auto phase = static_cast<size_t>(Phase::forward_embedding); phase < static_cast<size_t>(Phase::communication);
       ++phase)
    seconds += totals.seconds(static_cast<Phase>(phase));
  return seconds;
}

std::optional<SlowRank> find_slow_rank(const std::vector<double>& work_seconds) {
  // Below that, shares of work that cannot be equal and other programs' bursts look like it.
  constexpr double kSlow = 1.2, kSecondsToBeSure = 3;
  if (work_seconds.size() < 2) return std::nullopt;
  const auto slowest = std::max_element(work_seconds.begin(), work_seconds.end());
  std::vector<double> others(work_seconds.begin(), slowest);
  others.insert(others.end(), slowest + 1, work_seconds.end());
  const auto middle = others.begin() + std::ssize(others) / 2;
  std::nth_element(others.begin(), middle, others.end());
  if (*slowest < kSecondsToBeSure || *middle <= 0 || *slowest < kSlow * *middle) return std::nullopt;
  return SlowRank{slowest - work_seconds.begin(), *slowest / *middle};
}

void RankWatch::see(StepMetrics& line) {
  Communicator* ranks = plan_.processes().communicator();
  if (ranks == nullptr) return;
  Mark now{run_.ledger.totals(), resources_.engine->communication().hidden_seconds, line.step};
  const Mark before = last_.value_or(Mark{.step = line.step - 1});
  const double steps = static_cast<double>(std::max<int64_t>(1, now.step - before.step));
  if (last_) {
    line.communication = StepMetrics::Communication{
        .exposed_ms = 1e3 * (now.totals - before.totals).seconds(Phase::communication) / steps,
        .hidden_ms = 1e3 * std::max(0.0, now.hidden_seconds - before.hidden_seconds) / steps};
  } else {
    work_before_ = work_seconds(now.totals);
  }
  last_ = now;
  if (run_.summary.slow_rank) return;
  const std::optional<SlowRank> slow = find_slow_rank(ranks->gather(work_seconds(now.totals) - work_before_));
  if (!slow) return;
  const std::string host = ranks->gather(host_name())[static_cast<size_t>(slow->rank)];
  run_.summary.slow_rank = RunSummary::SlowRank{.rank = slow->rank, .host = host, .times = slow->times};
  warn(
      "step {}: rank {} on {} computes {:.2f} times as long as the others, which wait for it in every step: look for other "
      "programs on its cores (top), fewer cores or another kind of processor than the others have, or a processor that is "
      "throttled",
      line.step, slow->rank, host, slow->times);
}

}  // namespace brisk
