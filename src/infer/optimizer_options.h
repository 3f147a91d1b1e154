// From the job's training section to the options of the optimizer and its schedule.
//
//   const auto muon = muon_options(job.training);
//   const Schedule schedule = schedule_of(job.training, total_steps);
#pragma once

#include <cstdint>
#include <optional>

#include "job/job.h"
#include "optim/muon.h"
#include "optim/schedule.h"

namespace brisk {

std::optional<MuonOptions> muon_options(const TrainingOptions& training);  // none where AdamW does it all
double adapter_scale(const TrainingOptions& training);                     // 0 without adapters
// Of a run of `total_steps`; the schedule is as many times longer as schedule_ratio says.
Schedule schedule_of(const TrainingOptions& training, int64_t total_steps);

}  // namespace brisk
