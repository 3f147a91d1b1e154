// Rules about several processes that train one model together: those that there could be, and those of an earlier run.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/text/plural.h"
#include "doctor/judge/compose.h"
#include "doctor/judge/rule_groups.h"
#include "doctor/judge/shares.h"

namespace brisk {

namespace {

constexpr double kExposedIsMuch = 0.1;  // of the training's time
constexpr double kSlowIsMuch = 0.1;     // more computing than the others
constexpr double kLostIsMuch = 0.1;     // of the speed

// What an earlier run says of its ranks; none where it had one.
struct RankTimes {
  std::vector<double> communication, computing;
  std::vector<std::string> hosts;  // empty: not told
  double seconds = 0;

  explicit RankTimes(const HistoryReadings& history) : seconds(history.rank_seconds) {
    if (history.rank_communication.size() < 2 || !(seconds > 0)) return;
    for (const double each : history.rank_communication) {
      communication.push_back(std::clamp(each, 0.0, seconds));
      computing.push_back(seconds - communication.back());
    }
    const bool is_told =
        history.rank_work.size() == communication.size() &&
        std::all_of(history.rank_work.begin(), history.rank_work.end(), [](double work) { return work > 0; });
    if (is_told) computing = history.rank_work;
    if (history.rank_hosts.size() == communication.size()) hosts = history.rank_hosts;
  }
  bool known() const { return !communication.empty(); }
  int64_t ranks() const { return std::ssize(communication); }
  size_t slowest() const {
    return static_cast<size_t>(std::max_element(computing.begin(), computing.end()) - computing.begin());
  }
  // Of the others' computing, without the slowest.
  double usual_computing() const {
    std::vector<double> others = computing;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(slowest()));
    const auto middle = others.begin() + static_cast<std::ptrdiff_t>(others.size() / 2);
    std::nth_element(others.begin(), middle, others.end());
    return *middle;
  }
  // What even the slowest, for which nobody has to be waited, spends between the ranks.
  double exposed_share() const { return communication[slowest()] / seconds; }
};

std::string seconds_text(double seconds) { return number_text(seconds) + " s"; }

std::optional<Finding> look_several_processes(const Readings& readings) {
  const double alone = readings.process_curve.empty() ? 0 : readings.process_curve.front().tokens_per_second;
  if (!readings.stretch.gpu.name.empty() || alone <= 0) return {};
  const CurvePoint& best = *std::max_element(
      readings.process_curve.begin(), readings.process_curve.end(),
      [](const CurvePoint& a, const CurvePoint& b) { return a.tokens_per_second < b.tokens_per_second; });
  const int64_t processes = std::llround(best.x);
  if (processes < 2) return {};
  Finding finding{.id = "several_processes"};
  for (const CurvePoint& point : readings.process_curve) {
    finding.evidence.push_back({plural(std::llround(point.x), "process", "processes"),
                                speed_text(point.tokens_per_second), "measured, on the same cores"});
  }
  finding.cause =
      fmt::format("{} threads of one process wait for each other in every operation; {} processes do so once a step.",
                  readings.stretch.threads, processes);
  finding.fix = advise(fmt::format("start it with: brisk launch -n {} train JOB (docs/distributed.md)", processes));
  finding.fix->processes = processes;
  finding.predicted_gain = amdahl(EpochShares(readings).steps(), best.tokens_per_second / alone);
  finding.sameness = Sameness::same_maths;
  return finding;
}

std::optional<Finding> look_exposed_communication(const Readings& readings) {
  const RankTimes times(readings.history);
  if (!times.known() || times.exposed_share() < kExposedIsMuch) return {};
  Finding finding{.id = "exposed_communication"};
  finding.evidence = {
      {"communication that nothing hides", percent_text(times.exposed_share()),
       "of the training, in the rank that waits least"},
      {"ranks", number_text(static_cast<double>(times.ranks())), "of the run in the job's output folder"},
      {"gradients and weights", number_text(8e-6 * static_cast<double>(readings.model.trained_parameters)),
       "MB that each rank sends in a step, about"},
      {"sequences of a step", number_text(readings.stretch.sequences_per_step), "over all ranks"}};
  finding.cause = fmt::format("{} ranks spend {} of their time in nothing but communication.", times.ranks(),
                              percent_text(times.exposed_share()));
  finding.fix = advise(
      "fewer ranks, or a faster way between them (brisk launch -n N machine measures it); a larger training.batch_size "
      "communicates as often per step, and less per token, but is another training");
  finding.predicted_gain = gain_of_saving(std::min(0.95, times.exposed_share()));
  finding.sameness = Sameness::same_maths;
  return finding;
}

std::optional<Finding> look_slow_rank(const Readings& readings) {
  const RankTimes times(readings.history);
  if (!times.known()) return {};
  const size_t slowest = times.slowest();
  const double own = times.computing[slowest], usual = times.usual_computing();
  if (own < (1 + kSlowIsMuch) * usual) return {};
  Finding finding{.id = "slow_rank"};
  const std::string host = times.hosts.empty() || times.hosts[slowest].empty() ? "" : ", on " + times.hosts[slowest];
  finding.evidence = {
      {fmt::format("rank {}", slowest), seconds_text(own), "of computing" + host},
      {"the others", seconds_text(usual), "the median; the rest they wait"},
      {"ranks", number_text(static_cast<double>(times.ranks())), "of the run in the job's output folder"}};
  finding.cause = fmt::format("Rank {} computes {} longer than the others, and all wait for it in every step.", slowest,
                              percent_text(own / usual - 1));
  finding.fix = advise(
      "see what else runs on its cores or GPU; brisk launch -n N machine (or mpirun) tells the speed of each rank while all "
      "compute");
  finding.predicted_gain = gain_of_saving(std::min(0.95, (own - usual) / times.seconds));
  finding.sameness = Sameness::same_bits;
  return finding;
}

// What so many ranks reach of their speed with a step of so many sequences: each has a smaller part, some a larger one.
struct PartSpeed {
  double by_size = 1, by_division = 1;
  double reached() const { return by_size * by_division; }
};
PartSpeed part_speed(const Readings& readings, int64_t ranks) {
  const double sequences = readings.stretch.sequences_per_step, even = sequences / static_cast<double>(ranks);
  const double speed = speed_at(readings.batch_curve, even), whole = speed_at(readings.batch_curve, sequences);
  return {.by_size = speed > 0 && whole > speed ? speed / whole : 1, .by_division = even / std::ceil(even)};
}

// The most ranks that lose little.
int64_t ranks_that_scale(const Readings& readings, int64_t ranks) {
  while (ranks > 1 && 1 - part_speed(readings, ranks).reached() >= kLostIsMuch) --ranks;
  return ranks;
}

std::optional<Finding> look_small_part(const Readings& readings) {
  const RankTimes times(readings.history);
  const double sequences = readings.stretch.sequences_per_step;
  if (!times.known() || sequences <= 0) return {};
  const auto ranks = static_cast<double>(times.ranks());
  const double even = sequences / ranks, most = std::ceil(even);
  const PartSpeed part = part_speed(readings, times.ranks());
  if (1 - part.reached() < kLostIsMuch) return {};
  Finding finding{.id = "small_part"};
  finding.evidence = {{"sequences of a step", number_text(sequences), "over all ranks"},
                      {"ranks", number_text(ranks),
                       fmt::format("{} sequences each, the most {}", number_text(even), number_text(most))}};
  if (part.by_size < 1) {
    finding.evidence.push_back({fmt::format("{} at a time", plural(std::llround(std::max(1.0, even)), "sequence")),
                                speed_text(speed_at(readings.batch_curve, even)), "measured in one process"});
    finding.evidence.push_back({fmt::format("{} at a time", plural(std::llround(sequences), "sequence")),
                                speed_text(speed_at(readings.batch_curve, sequences)), "likewise"});
  }
  finding.cause = fmt::format("A step of {} sequences is too small for {} ranks: they reach {} of their speed.",
                              number_text(sequences), number_text(ranks), percent_text(part.reached()));
  const CurvePoint* knee = knee_of(readings.batch_curve);
  finding.fix = advise(fmt::format(
      "{} sequences a step (training.batch_size) keep them busy, and are another training; {} would be used fully",
      number_text(ranks * std::max(most, knee != nullptr ? knee->x : 1)),
      plural(ranks_that_scale(readings, times.ranks()), "rank")));
  finding.predicted_gain = amdahl(EpochShares(readings).steps(), 1 / part.reached());
  finding.sameness = Sameness::same_maths;
  return finding;
}

constexpr std::array kRankRules = {
    Rule{"several_processes", look_several_processes, "all cores are busy, and the model is small",
         "threads that share every operation wait for each other in each; processes that share the step wait once",
         "`brisk launch -n 2 train job.json`: the same maths on the same cores"},
    Rule{"exposed_communication", look_exposed_communication,
         "twice the processes are not nearly twice as fast; the summary tells much communication for every rank",
         "gradients and weights go between the ranks in every step, and nothing hides it",
         "fewer ranks; a faster network or transport; a larger step, which is another training"},
    Rule{"slow_rank", look_slow_rank, "one rank's share of communication is far below the others', who wait for it",
         "a step ends with its slowest rank",
         "free its cores or GPU of what else runs there, or leave that machine out"},
    Rule{
        "small_part", look_small_part, "more processes make it hardly faster, or slower",
        "a step has too few sequences to keep every rank busy, or they do not divide evenly",
        "a larger `training.batch_size`, a multiple of the ranks, which is another training; or fewer ranks, which are used fully"},
};

}  // namespace

std::span<const Rule> rules_of_ranks() { return kRankRules; }

}  // namespace brisk
