#include "optim/schedule.h"

#include <algorithm>
#include <cmath>

namespace brisk {

double Schedule::at(int64_t step) const {
  if (step <= warmup_steps)
    return rate * static_cast<double>(step) / static_cast<double>(std::max<int64_t>(1, warmup_steps));
  if (kind == ScheduleKind::constant) return rate;
  int64_t falling = std::max<int64_t>(1, total_steps - warmup_steps);  // the last steps
  if (kind == ScheduleKind::wsd) {
    falling = std::clamp<int64_t>(std::llround(decay_ratio * static_cast<double>(total_steps)), 1, falling);
  }
  const double done =
      std::clamp(static_cast<double>(step - 1 - (total_steps - falling)) / static_cast<double>(falling), 0.0, 1.0);
  const double left = kind == ScheduleKind::cosine ? 0.5 * (1.0 + std::cos(3.141592653589793 * done)) : 1.0 - done;
  return rate * (final_ratio + (1.0 - final_ratio) * left);
}

}  // namespace brisk
