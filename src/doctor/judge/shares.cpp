#include "doctor/judge/shares.h"

#include <algorithm>
#include <array>
#include <vector>

namespace brisk {

namespace {

constexpr double kKnee = 0.95;            // of the best speed
constexpr double kFewTensorCores = 0.5;   // of the FLOP
constexpr double kLaunchesAreMuch = 0.3;  // of a step

constexpr std::array kComputePhases = {Phase::forward_embedding,
                                       Phase::forward_linear,
                                       Phase::forward_attention,
                                       Phase::forward_norm,
                                       Phase::forward_elementwise,
                                       Phase::backward_embedding,
                                       Phase::backward_linear,
                                       Phase::backward_attention,
                                       Phase::backward_norm,
                                       Phase::backward_elementwise,
                                       Phase::loss,
                                       Phase::clipping,
                                       Phase::optimizer};

double ledger_seconds_of(const Ledger::Totals& ledger, std::span<const Phase> phases) {
  double seconds = 0;
  for (const Phase phase : phases) seconds += ledger.seconds(phase);
  return seconds;
}

std::vector<CurvePoint> measured_points(std::span<const CurvePoint> curve) {
  std::vector<CurvePoint> points;
  std::copy_if(curve.begin(), curve.end(), std::back_inserter(points),
               [](const CurvePoint& point) { return point.x > 0 && point.tokens_per_second > 0; });
  std::sort(points.begin(), points.end(), [](const CurvePoint& a, const CurvePoint& b) { return a.x < b.x; });
  return points;
}

}  // namespace

EpochShares::EpochShares(const Readings& readings)
    : ledger_(&readings.stretch.ledger), ledger_seconds_(ledger_->seconds()), seconds_(readings.epoch_seconds()) {
  if (seconds_ > 0) steps_ = std::clamp(1 - readings.course.seconds_per_epoch() / seconds_, 0.0, 1.0);
}

double EpochShares::of(std::span<const Phase> phases) const {
  return known() ? steps_ * ledger_seconds_of(*ledger_, phases) / ledger_seconds_ : 0;
}

double EpochShares::of_steps(std::initializer_list<Phase> phases) const {
  return known() ? ledger_seconds_of(*ledger_, phases) / ledger_seconds_ : 0;
}

double EpochShares::of_course(double seconds_each, double times_in_an_epoch) const {
  return seconds_ > 0 && seconds_each > 0 && times_in_an_epoch > 0 ? seconds_each * times_in_an_epoch / seconds_ : 0;
}

double saved_share(double share, double speedup) { return speedup > 0 ? share * (1 - 1 / speedup) : 0; }

double gain_of_saving(double saved) { return 1 / (1 - std::min(saved, 0.99)); }

std::span<const Phase> forward_phases() { return std::span(kComputePhases).first(5); }
std::span<const Phase> backward_phases() { return std::span(kComputePhases).subspan(5, 5); }
std::span<const Phase> product_phases() { return std::span(kComputePhases).first(11); }
std::span<const Phase> compute_phases() { return kComputePhases; }

double rate_in(const std::map<std::string, double>& rates, const std::string& format) {
  const auto found = rates.find(format);
  return found == rates.end() ? 0 : found->second;
}

double gain_of_format(const Readings& readings, const std::string& format) {
  const std::string& own = readings.model.precision;
  const EpochShares shares(readings);
  const auto& steps = readings.precision_tokens_per_second;
  const auto& products = readings.machine.product_gflops;
  const auto speedup = [&](const auto& rates) { return rate_in(rates, format) / rate_in(rates, own); };
  if (rate_in(steps, own) > 0 && rate_in(steps, format) > 0) return amdahl(shares.steps(), speedup(steps));
  if (rate_in(steps, own) > 0 || rate_in(products, own) <= 0 || rate_in(products, format) <= 0) return 1;
  return amdahl(shares.of({Phase::forward_linear, Phase::backward_linear, Phase::loss}), speedup(products));
}

bool leaves_tensor_cores_idle(const Readings& readings) {
  const GpuReadings& gpu = readings.stretch.gpu;
  const std::string& own = readings.model.precision;
  if (gpu.name.empty() || gpu.tensor_core_share < 0 || gpu.tensor_core_share >= kFewTensorCores) return false;
  const double rate = rate_in(readings.machine.product_gflops, own);
  return own == "fp32" && rate > 0 &&
         (rate_in(readings.machine.product_gflops, "bf16") > rate ||
          rate_in(readings.machine.product_gflops, "tf32") > rate);
}

bool is_launch_bound(const StretchReadings& stretch) {
  const GpuReadings& gpu = stretch.gpu;
  if (gpu.kernels_per_step <= 0 || gpu.mean_kernel_seconds <= 0 || gpu.launch_seconds <= 0) return false;
  if (stretch.median_step_seconds <= 0 || gpu.mean_kernel_seconds >= gpu.launch_seconds) return false;
  return gpu.kernels_per_step * gpu.launch_seconds > kLaunchesAreMuch * stretch.median_step_seconds;
}

double speed_at(std::span<const CurvePoint> curve, double x) {
  const std::vector<CurvePoint> points = measured_points(curve);
  if (points.empty()) return 0;
  const auto after = std::find_if(points.begin(), points.end(), [x](const CurvePoint& point) { return point.x >= x; });
  if (after == points.begin()) return points.front().tokens_per_second;
  if (after == points.end()) return points.back().tokens_per_second;
  const CurvePoint& before = *std::prev(after);
  const double share = (x - before.x) / (after->x - before.x);
  return before.tokens_per_second + share * (after->tokens_per_second - before.tokens_per_second);
}

const CurvePoint* knee_of(std::span<const CurvePoint> curve) {
  double best = 0;
  for (const CurvePoint& point : curve) best = std::max(best, point.tokens_per_second);
  const CurvePoint* knee = nullptr;
  for (const CurvePoint& point : curve) {
    if (point.tokens_per_second > 0 && point.tokens_per_second >= kKnee * best && (!knee || point.x < knee->x))
      knee = &point;
  }
  return knee;
}

}  // namespace brisk
