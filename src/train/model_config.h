// From the job's words to the decoder's configuration and its optimizer's.
#pragma once

#include <optional>

#include "base/job.h"
#include "models/decoder.h"
#include "optim/muon.h"
#include "optim/schedule.h"

namespace brisk {

// `vocab_size` of the job is the tokenizer's by then.
DecoderConfig decoder_config(const ModelOptions& model);
// The same as a job trains it: with adapters, or with layers frozen.
DecoderConfig training_config(const Job& job);
double adapter_scale(const TrainingOptions& training);                     // 0 without adapters
std::optional<MuonOptions> muon_options(const TrainingOptions& training);  // none where AdamW does it all
Schedule schedule_of(const TrainingOptions& training, int64_t total_steps);

}  // namespace brisk
