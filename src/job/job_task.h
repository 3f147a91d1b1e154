// What the task and the kind of model mean for the rest of a job: checks, and the defaults of encoders.
//
//   check_task(job);              // UserError: task classify with a decoder
//   resolve_encoder(job.model);   // token_types: 2 for bert, 1 for roberta, 0 for distilbert
#pragma once

#include "job/job.h"

namespace brisk {

// UserError where the model or a setting does not belong to the task: nothing that is given is silently ignored.
void check_task(const Job& job);

// Fills what an encoder of this type has where the job does not say; nothing of a decoder.
void resolve_encoder(ModelOptions& model);

// Likewise of what reads images: the stages of swin; a processor that is given by its path becomes the text of that file, so
// that a run needs it no longer. UserError where the stages do not fit each other.
void resolve_image_encoder(ModelOptions& model);

// Likewise of an encoder-decoder, whose other sizes are resolved; and UserError where its parts do not fit together.
void resolve_encoder_decoder(ModelOptions& model);
void check_encoder_decoder(const ModelOptions& model);

// The rate of a job that gives none, from fine-tuning practice; 0 of a language model, which has a rule of its own.
double encoder_learning_rate(const Job& job);

}  // namespace brisk
