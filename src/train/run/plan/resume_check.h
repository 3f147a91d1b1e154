// Whether a job is the one a run was started with.
//
//   check_same_job(read_file(run.job_path(), file_kind::job), run.job_path(), job);           // UserError: it changed
#pragma once

#include <string>

#include "job/job.h"

namespace brisk {

// UserError when `job` differs from the run's saved job in a setting that decides the loss curve.
void check_same_job(const std::string& saved_text, const std::string& saved_path, const Job& job);

}  // namespace brisk
