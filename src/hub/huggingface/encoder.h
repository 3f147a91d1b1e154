// Encoders in Hugging Face folders: config.json, weights (hub/formats/weight_files.h), a tokenizer.
//
//   const HuggingFaceEncoder there("bert-base-uncased");       // UserError unless configuration and files are there
//   job.model = there.config().model;
//   store.initialise(seed);                                    // for a head that the files lack
//   const EncoderLoading loading = there.load_into(store);     // every other parameter filled, or UserError
//   for (const std::string& line : loading.lines()) say("{}", line);
//
//   write_huggingface_encoder("export", config, store, *tokenizer, SafetensorsType::f32);
#pragma once

#include <set>
#include <string>
#include <vector>

#include "hub/formats/weight_files.h"
#include "hub/huggingface/encoder_config.h"
#include "hub/weight_map.h"
#include "tensor/parameter.h"
#include "text/tokenizer.h"

namespace brisk {

// Where files and model differ: what was left as it was, and what was left out.
struct EncoderLoading {
  std::vector<std::string> missing;   // parameters of a head that the files have not: they keep what they had
  std::vector<std::string> replaced;  // those of a classifier of another number of labels: the same
  int64_t labels_there = 0;           // the labels of that classifier
  std::vector<std::string> ignored;   // tensors of the files that the model does not have

  // For the user: "new weights: classifier.weight, classifier.bias (the checkpoint has none)".
  std::vector<std::string> lines() const;
};

class HuggingFaceEncoder {
 public:
  explicit HuggingFaceEncoder(const std::string& folder);

  const std::string& path() const { return path_; }
  const HuggingFaceEncoderConfig& config() const { return config_; }

  // What the files really hold on top of the layers, whatever the configuration says.
  HuggingFaceEncoderConfig::Head head() const;
  bool has_pooler() const;

  // Fills the masters of an encoder built from config().model, with any head; compute copies are stale afterwards.
  // Layer l comes from the files' layer `layers[l]`, so that a shorter model can begin as a part of a longer one;
  // empty: the layers as they are. A head that the files lack, or have for another number of labels, keeps its values.
  EncoderLoading load_into(ParameterStore& store, const std::vector<int64_t>& layers = {},
                           NonFinite nonfinite = NonFinite::refuse) const;
  // UserError where a tensor that such a model needs is missing or has another shape, or there are further layers; the
  // parameters of `store` need no memory yet.
  void check(const ParameterStore& store) const;

 private:
  // What is loaded from where, and what is not.
  struct Plan {
    EncoderLoading loading;
    std::vector<WeightMap> found;
    std::set<std::string> used, kept;
  };
  Plan plan(const ParameterStore& store, const std::vector<int64_t>& layers) const;
  WeightSource source(NonFinite nonfinite) const;
  const SafetensorsEntry* find(const std::string& name) const;
  void check_masked_words() const;

  std::string path_;
  HuggingFaceEncoderConfig config_;
  WeightFiles files_;
};

// Hugging Face's names of the parameters of `store`. `layers` as above.
std::vector<WeightMap> encoder_weight_map(const ModelOptions& model, const ParameterStore& store,
                                          const std::vector<int64_t>& layers = {});

// Writes model.safetensors, the tokenizer and config.json into `folder`, which must not hold a model yet; no more than
// a few MiB of weights are in memory besides the store. The head is the one that the store has. `max_length`: the tokens
// of a text that it was trained with, at which transformers cut by default; 0: as many as the model has positions.
void write_huggingface_encoder(const std::string& folder, const HuggingFaceEncoderConfig& config,
                               const ParameterStore& store, const Tokenizer& tokenizer, SafetensorsType type,
                               int64_t max_length = 0);

}  // namespace brisk
