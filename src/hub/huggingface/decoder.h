// Decoders in Hugging Face folders: config.json, weights (hub/formats/weight_files.h), a tokenizer.
//
//   const HuggingFaceDecoder model("gpt2");       // UserError unless configuration and files are there
//   job.model = model.config().model;           // build the decoder from these
//   model.check();                              // that the weights are those of the configuration
//   model.load_into(store);                     // every parameter filled, or UserError
//
//   write_huggingface("export", job.model, store, *tokenizer, SafetensorsType::f32);
#pragma once

#include <string>
#include <vector>

#include "hub/formats/safetensors.h"
#include "hub/formats/weight_files.h"
#include "hub/huggingface/decoder_config.h"
#include "hub/weight_map.h"
#include "tensor/parameter.h"
#include "text/tokenizer.h"

namespace brisk {

// A folder that looks like a Hugging Face model: it has a config.json.
bool is_huggingface_folder(const std::string& path);

class HuggingFaceDecoder {
 public:
  explicit HuggingFaceDecoder(const std::string& folder);

  const std::string& path() const { return path_; }
  const HuggingFaceDecoderConfig& config() const { return config_; }
  const SafetensorsEntry* find(const std::string& name) const { return files_.find(name); }  // nullptr if there is none

  // UserError where a tensor of the configuration is missing or has another shape, or there are further layers.
  void check() const;
  // Fills the masters of a decoder built from config().model; compute copies, where the store has them, are stale
  // after it. A tied model's output projection may stand in the files too; it must be the embedding then.
  void load_into(ParameterStore& store, NonFinite nonfinite = NonFinite::refuse) const;

 private:
  std::string prefix() const;
  WeightSource source(NonFinite nonfinite) const;

  std::string path_;
  HuggingFaceDecoderConfig config_;
  WeightFiles files_;
};

// The names of Hugging Face. `prefix` is "transformer." or "" for GPT-2, "model." for Llama.
std::vector<WeightMap> huggingface_weight_map(const HuggingFaceDecoderConfig& config, const std::string& prefix);

// Writes config.json, generation_config.json, model.safetensors and the tokenizer into `folder`, which must not hold
// a model yet. UserError if the model is of neither shape. `max_length`: the tokens of a text that it was trained with,
// at which transformers cut by default; 0: not said.
void write_huggingface(const std::string& folder, const ModelOptions& model, const ParameterStore& store,
                       const Tokenizer& tokenizer, SafetensorsType type, int64_t max_length = 0);

}  // namespace brisk
