// Parts of a new model that begin as the same parts of trained ones: an image encoder, a decoder (model.image_encoder_from,
// model.decoder_from).
//
//   const std::vector<ModelPart> parts = architecture_of(job.model).parts(job.model);
//   check_model_parts(parts, config);                              // UserError where one does not fit
//   for (const std::string& line : load_model_parts(parts, store, nonfinite)) say("{}", line);
#pragma once

#include <string>
#include <vector>

#include "hub/finite.h"
#include "models/model_config.h"
#include "tensor/parameter.h"

namespace brisk {

struct ModelPart {
  std::string option;  // that names the model: "model.decoder_from"
  std::string path;    // a run, a checkpoint, a Hugging Face folder
  // The parameters of the part, by what their names begin with, and what they may begin with there instead; the first that
  // there is counts.
  struct Names {
    std::string ours;
    std::vector<std::string> there;
  };
  std::vector<Names> names;
};

// An image encoder whose parameters are named `prefix`...; and what a TextDecoder has but for what depends on its encoder.
ModelPart image_encoder_part(const std::string& option, const std::string& path, const std::string& prefix);
ModelPart text_decoder_part(const std::string& option, const std::string& path);

// UserError where a parameter of a part is not there or has another shape, or where there are further layers.
void check_model_parts(const std::vector<ModelPart>& parts, const ModelConfig& config);

// Fills the masters of the parts; checked first, so that nothing changes where one does not fit. Compute copies are stale
// afterwards. Returns a line about each.
std::vector<std::string> load_model_parts(const std::vector<ModelPart>& parts, ParameterStore& store,
                                          NonFinite nonfinite);

}  // namespace brisk
