// Encoder-decoders in Hugging Face folders: config.json, weights (hub/formats/weight_files.h), a tokenizer.
//
//   const HuggingFaceEncoderDecoder there("opus-mt-en-de");     // UserError unless configuration and files are there
//   job.model = there.model();
//   there.load_into(store);                                     // every parameter filled, or UserError
//
//   write_huggingface_encoder_decoder("export", job.model, store, source_tokenizer, target_tokenizer, SafetensorsType::f32);
#pragma once

#include <string>
#include <vector>

#include "hub/formats/weight_files.h"
#include "hub/huggingface/encoder_decoder_config.h"
#include "hub/weight_map.h"
#include "tensor/parameter.h"
#include "text/tokenizer.h"

namespace brisk {

class HuggingFaceEncoderDecoder {
 public:
  explicit HuggingFaceEncoderDecoder(const std::string& folder);

  const std::string& path() const { return path_; }
  // With what the files alone tell: whether an output projection of its own is there.
  const ModelOptions& model() const { return config_.model; }

  // UserError where a tensor that the model needs is missing or has another shape, or there are further layers; the
  // parameters of `store` need no memory yet.
  void check(const ParameterStore& store) const;
  // Fills the masters of a model built from model(); compute copies are stale afterwards.
  void load_into(ParameterStore& store, NonFinite nonfinite = NonFinite::refuse) const;

 private:
  const SafetensorsEntry* find(const std::string& name) const;
  WeightSource source(NonFinite nonfinite) const;
  std::vector<WeightMap> map(const ParameterStore& store) const;
  void check_ties() const;

  std::string path_;
  HuggingFaceEncoderDecoderConfig config_;
  WeightFiles files_;
};

// Hugging Face's names of the parameters of `store`, but those of its tables of sinusoids, which no file has.
std::vector<WeightMap> encoder_decoder_weight_map(const HuggingFaceEncoderDecoderConfig& config,
                                                  const ParameterStore& store);

// Writes config.json, generation_config.json, model.safetensors and the tokenizer into `folder`, which must not hold a model
// yet. UserError if no shape of Hugging Face's has these options. Where the target has a tokenizer of its own, it goes to the
// sub-folder `target`. `max_length` as in write_huggingface_encoder().
void write_huggingface_encoder_decoder(const std::string& folder, const ModelOptions& model,
                                       const ParameterStore& store, const Tokenizer& source, const Tokenizer& target,
                                       SafetensorsType type, int64_t max_length = 0);

}  // namespace brisk
