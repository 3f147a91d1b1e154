// How long a Slurm allocation lasts, for a run that makes the most of it: "stop": "auto".
//
//   if (ends_with_allocation(job.training)) box.set_seconds(elapsed + seconds_left_to_train());
#pragma once

#include "job/job.h"

namespace brisk {

bool ends_with_allocation(const TrainingOptions& training);

// Until a run must end to be done before the allocation is: from SLURM_JOB_END_TIME of the runtime's environment, else as
// squeue says it. The last evaluation and checkpoint lie inside that time; what is kept back is for the end of the process and
// Slurm's clock. UserError outside of Slurm, where the time is not limited, and where too little is left.
double seconds_left_to_train();

}  // namespace brisk
