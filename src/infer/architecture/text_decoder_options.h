// What the model section of a job says of an encoder-decoder's layers and of its decoder, as their configurations.
//
//   const StackOptions options = stack_options(model);          // model's defaults are resolved
#pragma once

#include "job/job.h"
#include "models/text_decoder.h"

namespace brisk {

StackOptions stack_options(const ModelOptions& model);

TextDecoderConfig text_decoder_config(const ModelOptions& model);

}  // namespace brisk
