// From the job's words to the model's configuration and its optimizer's.
//
//   const DecoderConfig config = training_config(job);  // or encoder_config(job)
//   const auto muon = muon_options(job.training);
//   const Schedule schedule = schedule_of(job.training, total_steps);
#pragma once

#include <optional>
#include <string>

#include "job/job.h"
#include "models/registry.h"
#include "optim/muon.h"
#include "optim/schedule.h"

namespace brisk {

// `vocab_size` of the job is the tokenizer's by then.
DecoderConfig decoder_config(const ModelOptions& model);
// The same as a job trains it: with adapters, or with layers frozen.
DecoderConfig training_config(const Job& job);
// An encoder as a job trains it, with the head of its task.
EncoderConfig encoder_config(const Job& job);
// A trained model of either kind, to be used.
ModelConfig trained_config(const Job& job);
// An encoder that was imported without a head: its job is that of a classifier with no classes yet.
bool has_no_head(const Job& job);
std::string encoder_text(const Job& job);                                  // what no table shows, for people
double adapter_scale(const TrainingOptions& training);                     // 0 without adapters
std::optional<MuonOptions> muon_options(const TrainingOptions& training);  // none where AdamW does it all
Schedule schedule_of(const TrainingOptions& training, int64_t total_steps);

}  // namespace brisk
