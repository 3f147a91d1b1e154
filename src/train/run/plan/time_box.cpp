#include "train/run/plan/time_box.h"

#include <algorithm>
#include <cmath>

namespace brisk {

double TimeBox::evaluation_seconds() const {
  return evaluation_seconds_ >= 0 ? evaluation_seconds_ : options_.evaluation_steps * options_.step_seconds;
}

double TimeBox::fitting_steps(double elapsed) const {
  double left = options_.seconds - elapsed - evaluation_seconds() - options_.save_seconds;
  const auto count = static_cast<double>(options_.evaluations);
  left -= std::max(0.0, count - 1 - std::floor(count * progress_)) * evaluation_seconds();
  if (options_.save_every_seconds > 0 && left > options_.save_every_seconds)
    left *= options_.save_every_seconds / (options_.save_every_seconds + options_.exposed_save_seconds);
  double per_step = options_.step_seconds;
  const double bare = left / per_step;
  // Evaluations and checkpoints on the way are paid for a little with each step, so that they come as no surprise.
  if (options_.evaluate_every > 0 && static_cast<double>(options_.evaluate_every) < bare)
    per_step += evaluation_seconds() / static_cast<double>(options_.evaluate_every);
  if (options_.save_every > 0 && static_cast<double>(options_.save_every) < bare)
    per_step += options_.exposed_save_seconds / static_cast<double>(options_.save_every);
  return left / per_step;
}

double TimeBox::steps_left(double elapsed) const { return is_over() ? 0 : std::max(1.0, fitting_steps(elapsed)); }

bool TimeBox::evaluates(double before) const {
  const auto count = static_cast<double>(options_.evaluations);
  return !is_over() && std::floor(count * progress_) > std::floor(count * before);
}

bool TimeBox::ends_soon(double elapsed) const {
  constexpr double kShareOfInterval = 0.25;
  // Without the evaluation that is in question, which would take the time of these steps.
  const double steps = std::max(
      1.0, (options_.seconds - elapsed - evaluation_seconds() - options_.save_seconds) / options_.step_seconds);
  const double many = std::max(2.0, kShareOfInterval * static_cast<double>(options_.evaluate_every));
  return is_over() || steps - evaluation_seconds() / options_.step_seconds < many;
}

double TimeBox::rate(int64_t step, double elapsed) const {
  if (step <= options_.warmup_steps) {
    return options_.schedule.rate * static_cast<double>(step) / static_cast<double>(options_.warmup_steps);
  }
  const auto length = static_cast<double>(kScheduleLength);
  const double end = progress_ + (1 - progress_) / steps_left(elapsed);
  // As Schedule does: a step of the warm-up has the rate of its end, a later one that of its beginning.
  const auto at_end = static_cast<int64_t>(std::ceil(end * length));
  if (at_end <= options_.schedule.warmup_steps) return options_.schedule.at(std::max<int64_t>(1, at_end));
  return options_.schedule.at(std::min(kScheduleLength, 1 + static_cast<int64_t>(progress_ * length)));
}

void TimeBox::step_took(double seconds) {
  ++steps_measured_;
  // The first step touches all memory for the first time; the second replaces it. Later the last 20 count.
  const double weight = steps_measured_ <= 2 ? 1.0 : std::max(1.0 / static_cast<double>(steps_measured_ - 1), 1.0 / 20);
  options_.step_seconds += weight * (seconds - options_.step_seconds);
}

bool TimeBox::advance(double elapsed) {
  const double fitting = fitting_steps(elapsed);
  // Half a step too many or too few is as near as whole steps come.
  progress_ = fitting < 0.5 ? 1 : progress_ + (1 - progress_) / (1 + fitting);
  return is_over();
}

}  // namespace brisk
