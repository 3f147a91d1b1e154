// The declarations of a job's options, bound to the fields of `job`: what each means, in one place (see
// job/options/options.h for what a declaration can say).
//
//   Job job;
//   read_options(declare_job_options(job), text, "job.json");   // fills the fields; UserError on any problem
//
// To add an option: a field with its default in job/job.h, and its declaration in one of the files job_*_options.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "job/job.h"
#include "job/options/options.h"

namespace brisk {

std::vector<Option> declare_job_options(Job& job);

// Parts of it. A smoke test is so long: it has an evaluation in the middle, and checkpoints to be killed after.
constexpr int64_t kSmokeTestSteps = 24;
void declare_model_options(Job& job, std::vector<Option>& all);
void declare_image_options(Job& job, std::vector<Option>& all);
void declare_image_to_text_options(Job& job, std::vector<Option>& all);
void declare_training_options(Job& job, std::vector<Option>& all);
void declare_fine_tuning_options(Job& job, std::vector<Option>& all);
void declare_run_options(Job& job, std::vector<Option>& all);
void declare_data_options(Job& job, std::vector<Option>& all);
void declare_baseline_options(Job& job, std::vector<Option>& all);

// The job with what was found in its data; and with what an earlier run of it found, as far as the job leaves it open.
Job with_found(Job job, const FoundValues& found);
Job with_recalled(Job job, Job saved);

// Section name and what it holds, in the order of the reference; "" is the top of the file.
std::vector<std::pair<std::string, std::string>> job_sections();

}  // namespace brisk
