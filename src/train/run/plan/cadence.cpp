#include "train/run/plan/cadence.h"

#include <algorithm>
#include <cmath>

#include "base/rounding.h"

namespace brisk {

namespace {

constexpr int64_t kEvaluations = 10;
constexpr double kShare = 0.1, kShareOfEpochEnds = 1.0 / 3;

int64_t affordable(const EvaluationCosts& costs, double share) {
  if (costs.validation_rows <= 0) return kEvaluations;
  return static_cast<int64_t>(
      std::min<double>(kEvaluations, share * costs.step_cost * costs.training_rows / costs.validation_rows));
}

}  // namespace

EvaluationPlan plan_evaluations(const EvaluationCosts& costs) {
  EvaluationPlan plan{.total_steps = costs.total_steps, .steps_per_epoch = std::max<int64_t>(1, costs.steps_per_epoch)};
  const int64_t epochs = divide_up(plan.total_steps, plan.steps_per_epoch);
  if (costs.every_epoch && epochs > 1) return plan;
  const int64_t count =
      std::max<int64_t>({1, affordable(costs, kShare), std::min(epochs, affordable(costs, kShareOfEpochEnds))});
  if (count < epochs) {
    plan.every_epochs = divide_up(epochs, count);
  } else {
    const double in_epochs = static_cast<double>(plan.total_steps) / static_cast<double>(plan.steps_per_epoch);
    plan.per_epoch =
        std::clamp<int64_t>(static_cast<int64_t>(static_cast<double>(count) / in_epochs), 1, plan.steps_per_epoch);
  }
  return plan;
}

bool EvaluationPlan::is_due(int64_t step) const {
  const int64_t epoch = (step - 1) / steps_per_epoch, in_epoch = step - epoch * steps_per_epoch;
  if (every_epochs > 1) return in_epoch == steps_per_epoch && (epoch + 1) % every_epochs == 0;
  const int64_t parts = steps_per_epoch / per_epoch;
  const bool wanted = in_epoch * per_epoch / steps_per_epoch > (in_epoch - 1) * per_epoch / steps_per_epoch;
  // The last step is evaluated anyway: none just before it, where the run ends within an epoch.
  return wanted && (in_epoch == steps_per_epoch || total_steps - step >= parts / 2);
}

int64_t EvaluationPlan::count() const {
  if (every_epochs > 1) return divide_up(total_steps, every_epochs * steps_per_epoch);
  const int64_t whole = total_steps / steps_per_epoch, rest = total_steps % steps_per_epoch;
  int64_t count = whole * per_epoch;
  for (int64_t step = whole * steps_per_epoch + 1; step < total_steps; ++step) count += is_due(step) ? 1 : 0;
  return rest > 0 ? count + 1 : count;
}

int64_t evaluations_in(double box_seconds, double evaluation_seconds) {
  if (evaluation_seconds <= 0) return kEvaluations;
  return std::max<int64_t>(
      1, static_cast<int64_t>(std::min<double>(kEvaluations, kShare * box_seconds / evaluation_seconds)));
}

bool save_is_due(const SaveSchedule& schedule, const SaveOptions& options, int64_t step, bool last_of_epoch,
                 double seconds) {
  const bool ends_epoch = options.after_epochs && last_of_epoch;
  if (options.minutes <= 0) return ends_epoch;
  const double wanted = 60 * options.minutes;
  if (schedule.interval == 0) return seconds >= wanted || (ends_epoch && seconds >= wanted / 2);
  // A machine that has become much slower: nobody should lose more than twice what was wanted.
  return step >= schedule.next || seconds >= 2 * wanted ||
         (ends_epoch && 2 * options.steps_per_epoch >= schedule.interval);
}

SaveSchedule next_save(const SaveOptions& options, int64_t step, int64_t steps, double seconds) {
  if (options.minutes <= 0 || steps <= 0 || seconds <= 0) return {};
  const double in_interval = 60 * options.minutes / seconds * static_cast<double>(steps);
  const int64_t interval = std::max<int64_t>(1, std::llround(std::min(in_interval, 1e12)));
  return {interval, step + interval};
}

}  // namespace brisk
