// What is behind brisk/job.h, for the code that runs a job.
#pragma once

#include <brisk/job.h>

#include "job/job.h"

namespace brisk {

struct TrainingJob::Content {
  Job job;
};

// The job as it is run: with the model it starts from, and with every default chosen. Tells the log what was chosen.
Job resolved_job(const TrainingJob& job, bool resume);

}  // namespace brisk
