// From the job's words to the decoder's configuration.
#pragma once

#include "base/job.h"
#include "models/decoder.h"
#include "optim/schedule.h"

namespace brisk {

// `vocab_size` of the job is the tokenizer's by then.
DecoderConfig decoder_config(const ModelOptions& model, int64_t max_length);
Schedule schedule_of(const TrainingOptions& training, int64_t total_steps);

}  // namespace brisk
