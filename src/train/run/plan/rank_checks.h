// Whether the ranks that train together were started alike, before anything is written. All call each of these.
//
//   check_parts(job, processes);
//   check_started_alike(job, request, processes);
//   check_alike("its data", data.fingerprint, processes);
#pragma once

#include <string>
#include <string_view>

#include "job/job.h"
#include "train/engine/process_group.h"
#include "train/run/trainer.h"

namespace brisk {

// UserError where training.logical_ranks does not go with so many ranks.
void check_parts(const Job& job, ProcessGroup& processes);

// What must be the same in all ranks; the message names the first one that has something else.
void check_alike(std::string_view what, const std::string& own, ProcessGroup& processes);

// The job, how it is started, the program and its instruction set.
void check_started_alike(const Job& job, const TrainRequest& request, ProcessGroup& processes);

}  // namespace brisk
