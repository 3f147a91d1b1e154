// Rules about a GPU that trains.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/log.h"
#include "doctor/judge/compose.h"
#include "doctor/judge/rule_groups.h"
#include "doctor/judge/shares.h"

namespace brisk {

namespace {

constexpr double kIdleIsSmall = 0.05, kCopiesAreSmall = 0.03, kThrottlingIsSmall = 0.05;  // of the time

std::optional<Finding> look_launch_bound(const Readings& readings) {
  const StretchReadings& stretch = readings.stretch;
  const GpuReadings& gpu = stretch.gpu;
  if (gpu.name.empty() || !is_launch_bound(stretch)) return {};
  const double launching = std::min(1.0, gpu.kernels_per_step * gpu.launch_seconds / stretch.median_step_seconds);
  const TrainingOptions& training = readings.job.training;
  Finding finding{.id = "launch_bound"};
  finding.evidence = {{"kernels in a step", number_text(gpu.kernels_per_step), ""},
                      {"mean kernel", format_duration(gpu.mean_kernel_seconds), ""},
                      {"launch of one", format_duration(gpu.launch_seconds), "by the host"},
                      {"launches", percent_text(launching), "of a step"}};
  finding.cause = fmt::format("A kernel computes for {} and takes {} to launch: {} of a step is launching.",
                              format_duration(gpu.mean_kernel_seconds), format_duration(gpu.launch_seconds),
                              percent_text(launching));
  // Twice the rows take the same launches, until a kernel takes as long as its launch; or as the curve says, if there is one.
  double factor = 2, speedup = std::min(2.0, gpu.launch_seconds / gpu.mean_kernel_seconds), share = launching;
  const double own =
      static_cast<double>(stretch.sequences) / static_cast<double>(std::max<int64_t>(1, stretch.micro_batches));
  const CurvePoint* knee = knee_of(readings.batch_curve);
  if (knee != nullptr && knee->x > own) {
    factor = std::floor(knee->x / own);
    speedup = speed_at(readings.batch_curve, knee->x) / speed_at(readings.batch_curve, own);
    share = 1;
  }
  const bool is_divided = stretch.micro_batches > stretch.steps && stretch.micro_batches > 0;
  if (is_divided) {
    finding.fix = set_key("training.micro_batch_tokens",
                          json_number(std::ceil(factor * stretch.rows / static_cast<double>(stretch.micro_batches))));
    finding.sameness = Sameness::same_maths;
  } else {
    finding.fix = set_key("training.batch_size",
                          json_number(factor * static_cast<double>(std::max<int64_t>(1, training.batch_size))));
    follow_batch(*finding.fix, readings.job, factor);
    finding.sameness = Sameness::changes_maths;
    finding.change =
        fmt::format("an optimizer step sees {} times the sequences, so an epoch has that many times fewer steps",
                    number_text(factor));
  }
  finding.predicted_gain = amdahl(EpochShares(readings).steps() * share, speedup);
  return finding;
}

std::optional<Finding> look_gpu_gaps(const Readings& readings) {
  const GpuReadings& gpu = readings.stretch.gpu;
  const EpochShares shares(readings);
  if (gpu.name.empty() || gpu.idle_share <= kIdleIsSmall || is_launch_bound(readings.stretch)) return {};
  const double waiting = shares.of_steps({Phase::data_wait});
  if (waiting > 0.5 * gpu.idle_share) return {};  // `data_loading`
  Finding finding{.id = "gpu_gaps"};
  finding.evidence = {{"no kernel runs", percent_text(gpu.idle_share), "of the time of steps"},
                      {"waiting for batches", percent_text(waiting), "of the time of steps"}};
  finding.cause = fmt::format("The GPU is idle for {} of the time between the first and the last kernel of its steps.",
                              percent_text(gpu.idle_share));
  finding.fix = advise("less work of the host between steps: fewer log lines and callbacks, a faster or less busy CPU");
  finding.predicted_gain = gain_of_saving(shares.steps() * gpu.idle_share);
  finding.sameness = Sameness::same_bits;
  return finding;
}

std::optional<Finding> look_gpu_copies(const Readings& readings) {
  const GpuReadings& gpu = readings.stretch.gpu;
  if (gpu.name.empty() || gpu.copy_share <= kCopiesAreSmall) return {};
  Finding finding{.id = "gpu_copies"};
  finding.evidence = {{"copies that nothing overlaps", percent_text(gpu.copy_share), "of the time of steps"}};
  finding.cause = fmt::format("Copies between host and GPU, with no kernel running meanwhile, take {} of the time.",
                              percent_text(gpu.copy_share));
  finding.fix = advise(
      "batches copied ahead from pinned memory, and losses read back every few steps only "
      "(training.logging_steps)");
  finding.predicted_gain = gain_of_saving(EpochShares(readings).steps() * gpu.copy_share);
  finding.sameness = Sameness::same_bits;
  return finding;
}

std::optional<Finding> look_no_tensor_cores(const Readings& readings) {
  if (!leaves_tensor_cores_idle(readings)) return {};
  const std::string& own = readings.model.precision;
  const auto& rates = readings.machine.product_gflops;
  const std::string better = gain_of_format(readings, "bf16") >= gain_of_format(readings, "tf32") ? "bf16" : "tf32";
  const std::string used = percent_text(readings.stretch.gpu.tensor_core_share);
  Finding finding{.id = "no_tensor_cores"};
  finding.evidence = {
      {"work on tensor cores", used, "of the FLOP"},
      {"products and loss",
       percent_text(EpochShares(readings).of({Phase::forward_linear, Phase::backward_linear, Phase::loss})),
       "of the time of an epoch"},
      {"large products in " + better, number_text(rate_in(rates, better)) + " GFLOP/s",
       fmt::format("{} in {}", number_text(rate_in(rates, own)), own)}};
  finding.cause = fmt::format("{} of the work runs on tensor cores, because products are in {}.", used, own);
  finding.fix = set_key("training.precision", json_string(better));
  finding.predicted_gain = gain_of_format(readings, better);
  finding.sameness = Sameness::same_maths;
  return finding;
}

std::optional<Finding> look_gpu_throttled(const Readings& readings) {
  const GpuReadings& gpu = readings.stretch.gpu;
  if (gpu.name.empty()) return {};
  const auto worst = std::max_element(gpu.throttled.begin(), gpu.throttled.end(),
                                      [](const auto& a, const auto& b) { return a.second < b.second; });
  if (worst == gpu.throttled.end() || worst->second <= kThrottlingIsSmall) return {};
  const auto& [reason, share] = *worst;
  // At its power cap a GPU lowers its clock a little; only a clock that is clearly lower costs time.
  constexpr double kClearlyLower = 0.95;
  const bool is_power = reason == "power cap";
  if (is_power && gpu.sm_mhz > kClearlyLower * gpu.max_sm_mhz && gpu.max_sm_mhz > 0) return {};
  Finding finding{.id = "gpu_throttled", .shown_without_gain = true};
  finding.evidence = {{"clocks lowered", percent_text(share), "of the time: " + reason}};
  const bool clocks_known = gpu.sm_mhz > 0 && gpu.max_sm_mhz > gpu.sm_mhz;
  if (clocks_known)
    finding.evidence.push_back(
        {"clock", number_text(gpu.sm_mhz) + " MHz", fmt::format("of {}", number_text(gpu.max_sm_mhz))});
  if (gpu.watts >= 0 && gpu.watt_limit > 0)
    finding.evidence.push_back(
        {"power", number_text(gpu.watts) + " W", fmt::format("of {}", number_text(gpu.watt_limit))});
  if (gpu.celsius >= 0) finding.evidence.push_back({"temperature", number_text(gpu.celsius) + " C", ""});
  finding.cause = fmt::format("The GPU lowered its clocks for {} of the time: {}.", percent_text(share), reason);
  finding.fix = advise("better cooling, or a higher power limit (nvidia-smi -pl)");
  if (clocks_known)
    finding.predicted_gain =
        amdahl(EpochShares(readings).of(compute_phases()) * std::min(share, 1.0), gpu.max_sm_mhz / gpu.sm_mhz);
  finding.sameness = Sameness::same_bits;
  return finding;
}

constexpr std::array kGpuRules = {
    Rule{"launch_bound", look_launch_bound,
         "the GPU's load is high and it computes little; a larger batch takes no longer",
         "its kernels are shorter than it takes to launch them",
         "more rows at once: `training.micro_batch_tokens`, or a larger `training.batch_size`"},
    Rule{"gpu_gaps", look_gpu_gaps, "the GPU's load stays well below 100 % though no step waits for data",
         "the GPU waits for the host between kernels", "less work of the host between steps; a CPU that is not busy"},
    Rule{"gpu_copies", look_gpu_copies, "the GPU's load drops at the start of every step",
         "copies between host and GPU are not overlapped by computing",
         "pinned memory and copies ahead; values read back less often (`training.logging_steps`)"},
    Rule{"no_tensor_cores", look_no_tensor_cores, "a GPU is busy and far from its peak",
         "products in fp32 do not run on tensor cores", "`training.precision: bf16`, or `tf32`"},
    Rule{"gpu_throttled", look_gpu_throttled, "a GPU becomes slower after some minutes",
         "it lowers its clocks, to stay within its power limit or because it is hot", "cooling; a higher power limit"},
};

}  // namespace

std::span<const Rule> rules_of_gpu() { return kGpuRules; }

}  // namespace brisk
