#include "doctor/ladder/course.h"

#include <algorithm>
#include <array>

#include "base/rounding.h"
#include "train/run/plan/cadence.h"

namespace brisk {

namespace {

double evaluations_per_epoch(const Job& job, const ReadyFacts& facts) {
  const TrainingOptions& training = job.training;
  if (facts.validation_sequences == 0) return 0;
  const auto steps = static_cast<double>(facts.steps_per_epoch);
  const double epochs = std::max(1.0, static_cast<double>(facts.total_steps) / steps);
  if (training.eval_steps == 0) return 1;
  if (training.eval_steps > 0) return std::max(1 / epochs, steps / static_cast<double>(training.eval_steps));
  const EvaluationPlan plan = plan_evaluations({.total_steps = facts.total_steps,
                                                .steps_per_epoch = facts.steps_per_epoch,
                                                .training_rows = epochs * facts.tokens_per_epoch,
                                                .validation_rows = static_cast<double>(facts.validation_rows),
                                                .every_epoch = training.early_stopping_patience > 0});
  return static_cast<double>(plan.count()) / epochs;
}

double saves_per_epoch(const Job& job, const ReadyFacts& facts, double epoch_seconds) {
  const TrainingOptions& training = job.training;
  const auto steps = static_cast<double>(facts.steps_per_epoch);
  double saves = training.save_steps > 0    ? steps / static_cast<double>(training.save_steps)
                 : training.save_steps == 0 ? 1
                                            : 0;
  if (training.save_minutes > 0) saves = std::max(saves, epoch_seconds / (60 * training.save_minutes));
  const double epochs = std::max(1.0, static_cast<double>(facts.total_steps) / steps);
  return std::max(saves, 1 / epochs);
}

}  // namespace

CourseReadings course_of(const Job& job, const ReadyFacts& facts, double seconds_per_step) {
  CourseReadings course;
  course.steps_per_epoch = static_cast<double>(facts.steps_per_epoch);
  course.epochs = static_cast<double>(divide_up(facts.total_steps, std::max<int64_t>(1, facts.steps_per_epoch)));
  course.evaluations_per_epoch = evaluations_per_epoch(job, facts);
  course.saves_per_epoch = saves_per_epoch(job, facts, seconds_per_step * course.steps_per_epoch);
  course.start_up_seconds = facts.start_up_seconds;
  return course;
}

bool is_of_course(const std::string& key) {
  constexpr std::array kKeys = {"training.eval_steps", "training.save_steps", "training.save_minutes",
                                "training.early_stopping_patience", "data.validation_fraction"};
  return std::find(kKeys.begin(), kKeys.end(), key) != kKeys.end();
}

}  // namespace brisk
