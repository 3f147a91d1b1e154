// Hugging Face's VisionEncoderDecoderModel: config.json with the two parts' configurations, preprocessor_config.json, weights,
// a tokenizer.
//
//   const HuggingFaceVisionEncoderDecoder there("trocr-base");       // UserError unless configuration and files are there
//   job.model = there.model();
//   there.load_into(store);                                          // every parameter filled, or UserError
//
//   write_huggingface_vision_encoder_decoder("export", model, store, tokenizer, SafetensorsType::f32);
#pragma once

#include <string>
#include <vector>

#include "hub/formats/weight_files.h"
#include "hub/huggingface/text_decoder.h"
#include "hub/weight_map.h"
#include "job/job.h"
#include "tensor/parameter.h"
#include "text/tokenizer.h"

namespace brisk {

bool is_huggingface_vision_encoder_decoder(const std::string& folder);

class HuggingFaceVisionEncoderDecoder {
 public:
  explicit HuggingFaceVisionEncoderDecoder(const std::string& folder);

  const std::string& path() const { return path_; }
  // With what the files alone tell: whether the output projection is the token embedding.
  const ModelOptions& model() const { return model_; }

  // UserError where a tensor that the model needs is missing or has another shape, or there are further layers of the
  // decoder; the parameters of `store` need no memory yet.
  void check(const ParameterStore& store) const;
  // Fills the masters of a model built from model(); compute copies are stale afterwards.
  void load_into(ParameterStore& store, NonFinite nonfinite = NonFinite::refuse) const;

 private:
  std::vector<WeightMap> map(const ParameterStore& store) const;
  WeightSource source(NonFinite nonfinite) const;

  std::string path_;
  ModelOptions model_;
  TextDecoderShape shape_ = TextDecoderShape::bert;
  WeightFiles files_;
};

// UserError where transformers has no such model; the options are resolved.
void check_huggingface_vision_encoder_decoder(const ModelOptions& model);

// Writes config.json, generation_config.json, preprocessor_config.json (model.image_processor), model.safetensors and the
// tokenizer into `folder`, which must not hold a model yet.
void write_huggingface_vision_encoder_decoder(const std::string& folder, const ModelOptions& model,
                                              const ParameterStore& store, const Tokenizer& tokenizer,
                                              SafetensorsType type, int64_t max_length = 0);

}  // namespace brisk
