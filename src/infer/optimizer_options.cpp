#include "infer/optimizer_options.h"

#include <algorithm>
#include <cmath>

namespace brisk {

std::optional<MuonOptions> muon_options(const TrainingOptions& training) {
  if (training.optimizer != "muon") return std::nullopt;
  return MuonOptions{.rate_ratio = training.muon_learning_rate / training.learning_rate,
                     .momentum = training.muon_momentum,
                     .weight_decay = training.weight_decay};
}

double adapter_scale(const TrainingOptions& training) {
  return training.lora_rank > 0 ? training.lora_alpha / static_cast<double>(training.lora_rank) : 0;
}

Schedule schedule_of(const TrainingOptions& training, int64_t total_steps) {
  Schedule schedule;
  schedule.kind = training.lr_scheduler == "constant" ? ScheduleKind::constant
                  : training.lr_scheduler == "linear" ? ScheduleKind::linear
                  : training.lr_scheduler == "wsd"    ? ScheduleKind::wsd
                                                      : ScheduleKind::cosine;
  schedule.rate = training.learning_rate;
  schedule.final_ratio = training.min_learning_rate_ratio;
  schedule.decay_ratio = training.decay_ratio;
  const double ratio = std::max(1.0, training.schedule_ratio);
  schedule.total_steps = std::llround(ratio * static_cast<double>(total_steps));
  schedule.warmup_steps = warmup_steps_of(training, schedule.total_steps);
  return schedule;
}

}  // namespace brisk
