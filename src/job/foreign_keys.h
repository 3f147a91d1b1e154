// The keys of Hugging Face's TrainingArguments, of its example scripts and of a few other trainers that are no options of
// brisk, each with an answer: used, ignored and why, or refused and what to do instead.
//
//   read_options(declare_job_options(job), text, "job.json", overrides, foreign_keys());
//
// A key that brisk has under another name is an Option::also. A key whose effect would be missing from the result is
// refused, unless its value switches it off; one that only says how PyTorch is to work is ignored.
#pragma once

#include <vector>

#include "job/options/foreign_key.h"

namespace brisk {

const std::vector<ForeignKey>& foreign_keys();

}  // namespace brisk
