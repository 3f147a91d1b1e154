// The tuned job as a file: the user's own with the keys that changed, why they did, and the figures of before.
//
//   write_file_atomically("fast.json", tuned_job_text(diagnosis, read_file("job.json", file_kind::job)), Links::follow);
#pragma once

#include <string>

#include "doctor/diagnosis.h"

namespace brisk {

// `original`: the text of the job's file. The run goes to a folder of its own.
std::string tuned_job_text(const Diagnosis& diagnosis, const std::string& original, const std::string& apply_path);

}  // namespace brisk
