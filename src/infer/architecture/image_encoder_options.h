// What the model section of a job says of the encoder of a model that reads images, as its configuration.
//
//   ImageEncoderConfig encoder = image_encoder_config(job.model);
//
// The sizes of a classifier's are the model's own (d_model, num_layers, ...), those of an encoder-decoder's have names of their
// own (encoder_d_model, ...). UserError for sizes that do not fit each other.
#pragma once

#include "job/job.h"
#include "models/image_encoder.h"

namespace brisk {

ImageEncoderConfig image_encoder_config(const ModelOptions& model);

// How an image of this size is read. `processor`: what a preprocessor_config.json holds, or nothing; `size`: its height and
// width, or one number for both, or nothing where the processor says. `where` and `processor_option`: the keys of
// the size and of the processor, in errors.
ImageInput image_input_of(const std::string& processor, const std::vector<int64_t>& size, int64_t patch, bool class_row,
                          const std::string& where, const std::string& processor_option);

}  // namespace brisk
