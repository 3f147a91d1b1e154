// Rules about the machine that trains: its cores, the CPU quota, memory, other programs, GPUs that nobody uses.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/log.h"
#include "base/text/plural.h"
#include "doctor/judge/compose.h"
#include "doctor/judge/rule_groups.h"
#include "doctor/judge/shares.h"

namespace brisk {

namespace {

constexpr double kThrottledIsMuch = 0.02;     // of the time
constexpr double kTakenIsMuch = 0.1;          // of the threads' time
constexpr double kFaultsAreMany = 10;         // major page faults a second
constexpr double kWeightsAndStateBytes = 18;  // for a parameter (docs/growth.md)

bool trains_on_cpu(const Readings& readings) { return readings.stretch.gpu.name.empty(); }

std::string cores_text(double cores) { return fmt::format("{} {}", number_text(cores), cores == 1 ? "core" : "cores"); }

// From the threads there are to `threads`: by the measured curve, where there is one, else by `otherwise`.
double speedup_of_threads(const Readings& readings, double threads, double otherwise) {
  const double now = speed_at(readings.thread_curve, static_cast<double>(readings.stretch.threads));
  return readings.thread_curve.size() > 1 && now > 0 ? speed_at(readings.thread_curve, threads) / now : otherwise;
}

void add_curve(Finding& finding, const Readings& readings) {
  for (const CurvePoint& point : readings.thread_curve)
    finding.evidence.push_back(
        {plural(std::llround(point.x), "thread"), speed_text(point.tokens_per_second), "measured"});
}

Fix fix_of_threads(const Readings& readings, int64_t threads) {
  if (threads != readings.machine.cores) return set_key("training.threads", json_number(static_cast<double>(threads)));
  return readings.job.training.threads > 0 ? set_key("training.threads", kJsonAuto)
                                           : set_key("training.threads", json_number(static_cast<double>(threads)));
}

std::optional<Finding> look_too_few_threads(const Readings& readings) {
  const int64_t threads = readings.stretch.threads, cores = readings.machine.cores;
  if (!trains_on_cpu(readings) || threads <= 0 || threads >= cores) return {};
  int64_t best = cores;  // the fewest within 1 % of the fastest
  double speed = speed_at(readings.thread_curve, static_cast<double>(cores));
  for (const CurvePoint& point : readings.thread_curve) {
    if (point.x > static_cast<double>(cores) || point.tokens_per_second <= 1.01 * speed) continue;
    speed = point.tokens_per_second, best = std::llround(point.x);
  }
  if (best <= threads) return {};
  Finding finding{.id = "too_few_threads"};
  finding.evidence = {{"compute threads", number_text(static_cast<double>(threads)), ""},
                      {"cores", number_text(static_cast<double>(cores)), "that this process may use"}};
  add_curve(finding, readings);
  finding.cause = fmt::format("{} computing on {}, so {} idle.", plural(threads, "thread is", "threads are"),
                              cores_text(static_cast<double>(cores)), plural(cores - threads, "core is", "cores are"));
  finding.fix = fix_of_threads(readings, best);
  finding.predicted_gain = amdahl(EpochShares(readings).of(compute_phases()),
                                  speedup_of_threads(readings, static_cast<double>(best),
                                                     static_cast<double>(best) / static_cast<double>(threads)));
  finding.sameness = Sameness::same_maths;  // gradients of norms and biases are summed by thread
  return finding;
}

// A core that has one thread more than the others holds up all of them.
double imbalance(int64_t threads, int64_t cores) {
  const double each = static_cast<double>(threads) / static_cast<double>(cores);
  return std::ceil(each) / each;
}

double throttled_share(const Readings& readings) {
  const StretchReadings& stretch = readings.stretch;
  return stretch.seconds > 0 && stretch.throttled_seconds > 0
             ? std::min(stretch.throttled_seconds / stretch.seconds, 0.95)
             : 0;
}

std::optional<Finding> look_oversubscribed(const Readings& readings) {
  const int64_t threads = readings.stretch.threads, cores = readings.machine.cores;
  if (!trains_on_cpu(readings) || threads <= cores || cores <= 0) return {};
  Finding finding{.id = "oversubscribed"};
  finding.evidence = {{"compute threads", number_text(static_cast<double>(threads)), ""},
                      {"cores", number_text(static_cast<double>(cores)), "that this process may use"}};
  add_curve(finding, readings);
  finding.cause = fmt::format("{} threads share {}, and each operation ends with the last of them.", threads,
                              cores_text(static_cast<double>(cores)));
  finding.fix = fix_of_threads(readings, cores);
  finding.predicted_gain =
      std::max(1.0, amdahl(EpochShares(readings).of(compute_phases()),
                           speedup_of_threads(readings, static_cast<double>(cores), imbalance(threads, cores))));
  finding.sameness = Sameness::same_maths;
  finding.shown_without_gain = readings.thread_curve.empty();
  return finding;
}

std::optional<Finding> look_quota_throttled(const Readings& readings) {
  const double share = throttled_share(readings), quota = readings.machine.quota_cores;
  const int64_t threads = readings.stretch.threads;
  if (share <= kThrottledIsMuch) return {};
  Finding finding{.id = "quota_throttled"};
  finding.evidence = {{"stopped by the CPU quota", percent_text(share), "of the time"}};
  if (quota > 0) finding.evidence.push_back({"quota", cores_text(quota), "of the cgroup"});
  finding.evidence.push_back({"compute threads", number_text(static_cast<double>(threads)), ""});
  const std::string of_quota = quota > 0 ? fmt::format(" of {}", cores_text(quota)) : "";
  finding.cause =
      fmt::format("The cgroup's CPU quota{} stopped the process for {} of the time.", of_quota, percent_text(share));
  finding.shown_without_gain = true;
  const auto within = static_cast<int64_t>(quota);
  if (within >= 1 && threads > within) {
    finding.fix = set_key("training.threads", json_number(static_cast<double>(within)), "or a larger quota");
    finding.predicted_gain =
        std::max(1.0, amdahl(EpochShares(readings).of(compute_phases()),
                             speedup_of_threads(readings, static_cast<double>(within), imbalance(threads, within))));
  } else {
    finding.fix = advise("a larger CPU quota for the container or the job (cpu.max)");
    finding.predicted_gain = gain_of_saving(share);
  }
  finding.sameness = Sameness::same_maths;
  return finding;
}

// The time in which threads waited for memory to come back from the disk.
double swapping_share(const StretchReadings& stretch) {
  if (stretch.disk_wait_seconds > 0) return std::min(stretch.disk_wait_seconds / stretch.seconds, 0.95);
  if (stretch.threads <= 0 || stretch.user_seconds <= 0) return 0;
  const double running =
      (stretch.user_seconds + stretch.system_seconds) / (stretch.seconds * static_cast<double>(stretch.threads));
  return std::clamp(1 - running, 0.0, 0.95);
}

std::optional<Finding> look_swapping(const Readings& readings) {
  const StretchReadings& stretch = readings.stretch;
  if (stretch.swapped_bytes <= 0 || stretch.seconds <= 0) return {};
  const double faults = static_cast<double>(stretch.major_faults) / stretch.seconds;
  if (faults < kFaultsAreMany) return {};
  Finding finding{.id = "swapping"};
  finding.evidence = {{"memory in swap", format_bytes(static_cast<double>(stretch.swapped_bytes)), "of this process"},
                      {"page faults that read the disk", number_text(faults), "a second"},
                      {"peak memory", format_bytes(static_cast<double>(stretch.peak_memory_bytes)), ""}};
  finding.cause =
      fmt::format("{} of the training lie in swap, and {} pages a second are read back from the disk.",
                  format_bytes(static_cast<double>(stretch.swapped_bytes)), number_text(std::round(faults)));
  const double rows = stretch.micro_batches > 0 ? stretch.rows / static_cast<double>(stretch.micro_batches) : 0;
  const double longest = static_cast<double>(std::max(readings.data.longest, readings.job.training.max_length));
  const double weights = kWeightsAndStateBytes * static_cast<double>(readings.model.trained_parameters);
  const std::string advice = "end other programs, or use a machine with more memory";
  const bool activations_are_most = weights < 0.5 * static_cast<double>(stretch.planned_memory_bytes);
  finding.fix = activations_are_most && rows / 2 >= std::max(longest, 1.0)
                    ? set_key("training.micro_batch_tokens", json_number(std::floor(rows / 2)), advice)
                    : advise(advice + ", or a smaller model");
  finding.predicted_gain = amdahl(EpochShares(readings).steps(), 1 / (1 - swapping_share(stretch)));
  finding.sameness = Sameness::same_maths;
  finding.shown_without_gain = true;
  return finding;
}

bool hides_all_gpus(const std::string& visible_devices) {
  return visible_devices.empty() || visible_devices == "-1" || visible_devices == "NoDevFiles" ||
         visible_devices == "none" || visible_devices == "void";
}

std::optional<Finding> look_idle_gpu(const Readings& readings) {
  const MachineReadings& machine = readings.machine;
  if (machine.gpus.empty()) return {};
  const bool on_cpu = trains_on_cpu(readings);
  if (!on_cpu && machine.gpus.size() < 2) return {};
  Finding finding{.id = "idle_gpu", .shown_without_gain = true};
  finding.evidence = {
      {"GPUs", number_text(static_cast<double>(machine.gpus.size())), machine.gpus.front()},
      {"training on", on_cpu ? "the CPU" : readings.stretch.gpu.name,
       fmt::format("device \"{}\"", readings.job.device)},
      {"CUDA_VISIBLE_DEVICES", machine.visible_devices.empty() ? "empty" : machine.visible_devices, ""}};
  finding.sameness = Sameness::same_maths;
  if (!on_cpu) {
    finding.cause = fmt::format("One of {} GPUs is used: a process trains on one.", machine.gpus.size());
    finding.fix =
        advise(fmt::format("a process for each GPU: brisk launch -n {} train JOB (docs/distributed.md); or run other "
                           "jobs on the others: --device cuda:1, ...",
                           machine.gpus.size()));
    finding.fix->processes = static_cast<int64_t>(machine.gpus.size());
    return finding;
  }
  finding.cause = fmt::format("The job trains on the CPU beside {} ({}).",
                              plural(static_cast<int64_t>(machine.gpus.size()), "GPU"), machine.gpus.front());
  if (hides_all_gpus(machine.visible_devices)) {
    finding.cause = fmt::format("CUDA_VISIBLE_DEVICES hides {} from the job, which trains on the CPU.",
                                plural(static_cast<int64_t>(machine.gpus.size()), "GPU"));
    finding.fix = advise("unset CUDA_VISIBLE_DEVICES, or set it to 0");
  } else if (!machine.no_gpu.empty()) {
    finding.fix = advise("make the GPU usable: " + machine.no_gpu);
  } else {
    finding.fix = set_key("device", json_string("cuda"));
  }
  return finding;
}

// The share of their time that the compute threads wait for a processor that another program has; as the system counts
// it, or else what is left when others' time is taken from the processors. Threads that are too many wait for each other.
double share_taken_by_others(const Readings& readings) {
  const StretchReadings& stretch = readings.stretch;
  const auto threads = static_cast<double>(stretch.threads);
  const double processors = static_cast<double>(readings.machine.logical_processors);
  const double cores = std::min(processors, static_cast<double>(readings.machine.cores));
  if (threads <= 0 || stretch.seconds <= 0 || threads > cores) return 0;
  if (stretch.waiting_seconds >= 0) return std::min(0.9, stretch.waiting_seconds / (threads * stretch.seconds));
  const double contended = threads + stretch.other_seconds / stretch.seconds - processors;  // that both want
  return std::clamp(contended / threads, 0.0, 0.9);
}

std::optional<Finding> look_busy_machine(const Readings& readings) {
  const StretchReadings& stretch = readings.stretch;
  const double taken = share_taken_by_others(readings);
  if (!trains_on_cpu(readings) || stretch.other_seconds <= 0 || taken <= kTakenIsMuch) return {};
  const double others = stretch.other_seconds / stretch.seconds;
  Finding finding{.id = "busy_machine"};
  finding.evidence = {{"threads kept waiting", percent_text(taken), "of their time, for a processor"},
                      {"other programs", fmt::format("{:.1f} processors", others), "busy all the time on the average"},
                      {"compute threads", number_text(static_cast<double>(stretch.threads)), ""}};
  finding.cause = fmt::format("Other programs keep {:.1f} of {} busy, and the training waits for them {} of its time.",
                              others, plural(readings.machine.logical_processors, "processor"), percent_text(taken));
  finding.fix = advise("end them, or train when they have ended");
  finding.predicted_gain = amdahl(EpochShares(readings).of(compute_phases()), 1 / (1 - taken));
  finding.sameness = Sameness::same_bits;
  return finding;
}

constexpr std::array kMachineRules = {
    Rule{"too_few_threads", look_too_few_threads, "some cores are idle while it trains",
         "fewer threads compute than there are cores", "`training.threads: \"auto\"`: as many as there are cores"},
    Rule{"oversubscribed", look_oversubscribed, "all cores are busy, and fewer threads would be faster",
         "more threads compute than there are cores, and all wait for the one that does not run",
         "`training.threads: \"auto\"`"},
    Rule{"quota_throttled", look_quota_throttled,
         "in a container, training is slower than the number of cores suggests, and step times vary",
         "the cgroup's CPU quota stops all threads until its next period",
         "as many threads as the quota has cores (`training.threads`), or a larger quota"},
    Rule{
        "swapping", look_swapping, "a step takes minutes, the disk is busy and the processors are not",
        "the training does not fit into memory, and parts of it are read back from the disk in every step",
        "free memory; a smaller `training.micro_batch_tokens`, which changes no result; `training.gradient_checkpointing: 1`"},
    Rule{
        "idle_gpu", look_idle_gpu, "only GPU 0 is busy; or there is a GPU and its load is 0 %",
        "the job trains on the CPU beside a GPU, `CUDA_VISIBLE_DEVICES` hides it, or there are more GPUs than the one that "
        "a process uses",
        "`device: \"cuda\"`; `unset CUDA_VISIBLE_DEVICES`; a process for each GPU (`brisk launch -n 8 train job.json`), or other "
        "jobs on the other GPUs (`--device cuda:1`)"},
    Rule{"busy_machine", look_busy_machine, "the same job is slower today than yesterday",
         "other programs use the processors that the training wants", "end them, or wait for them"},
};

}  // namespace

std::span<const Rule> rules_of_machine() { return kMachineRules; }

}  // namespace brisk
