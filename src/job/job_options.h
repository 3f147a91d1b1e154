// The declarations of a job's options, bound to the fields of `job`.
//
//   Job job;
//   read_options(declare_job_options(job), text, "job.json", {});   // fills the fields; UserError on any problem
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "job/job.h"
#include "job/options/options.h"

namespace brisk {

std::vector<Option> declare_job_options(Job& job);

// Parts of it: the data, what only encoders have, and the columns of a table of labelled texts.
void declare_data(DataOptions& data, std::vector<Option>& all);
void declare_encoder(ModelOptions& model, std::vector<Option>& all);
void declare_encoder_training(TrainingOptions& training, std::vector<Option>& all);
void declare_table(DataOptions& data, std::vector<Option>& all);

// Section name and what it holds, in the order of the reference; "" is the top of the file.
std::vector<std::pair<std::string, std::string>> job_sections();

}  // namespace brisk
