// The learning rate of every optimizer step. Schedules count optimizer steps, never micro-batches.
//
//   const Schedule schedule{.kind = ScheduleKind::cosine, .rate = 1e-3, .warmup_steps = 100, .total_steps = 5000};
//   schedule.at(50);      // 5e-4: half of the warm-up
#pragma once

#include <cstdint>

namespace brisk {

enum class ScheduleKind : uint8_t { constant, linear, cosine, wsd };  // wsd: warm-up, stable, decay

struct Schedule {
  ScheduleKind kind = ScheduleKind::cosine;
  double rate = 1e-3;  // the peak
  // All but constant fall towards rate * final_ratio, one step after the last: no step is lost to 0.
  double final_ratio = 0;
  double decay_ratio = 1;    // wsd: the last share of all steps, in which the rate falls linearly
  int64_t warmup_steps = 0;  // linear from 0; step 1 already has rate / warmup_steps
  int64_t total_steps = 1;

  double at(int64_t step) const;  // of optimizer step 1, 2, ...
};

}  // namespace brisk
