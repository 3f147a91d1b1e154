// What a job's task asks of the rest of it.
//
//   resolve_encoder(job.model);   // "distilbert" has six layers
//   check_task(job);              // a job of the task classify whose model is a decoder ends here
#pragma once

#include "job/job.h"

namespace brisk {

// UserError where the model or a setting does not belong to the task: nothing that is given is silently ignored.
void check_task(const Job& job);

// Fills what an encoder of this type has where the job does not say; nothing of a decoder.
void resolve_encoder(ModelOptions& model);

// The rate of a job that gives none, from fine-tuning practice; 0 of a language model, which has a rule of its own.
double encoder_learning_rate(const Job& job);

}  // namespace brisk
