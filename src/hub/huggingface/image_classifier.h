// Image encoders in Hugging Face folders, with a classifier or without a head: config.json, preprocessor_config.json, weights.
//
//   const HuggingFaceImageClassifier there("vit-base-patch16-224");    // UserError unless configuration and files are there
//   job.model = there.model();
//   store.initialise(seed);                                            // for a head that the files lack
//   for (const std::string& line : there.load_into(store).lines()) say("{}", line);
//
//   write_huggingface_image_classifier("export", model, labels, store, SafetensorsType::f32);
#pragma once

#include <set>
#include <string>
#include <vector>

#include "hub/formats/weight_files.h"
#include "hub/huggingface/encoder.h"
#include "hub/weight_map.h"
#include "job/job.h"
#include "tensor/parameter.h"

namespace brisk {

// `folder` holds a config.json of an image encoder (hub/huggingface/image_encoder.h).
bool is_huggingface_image_encoder(const std::string& folder);

class HuggingFaceImageClassifier {
 public:
  explicit HuggingFaceImageClassifier(const std::string& folder);

  const std::string& path() const { return path_; }
  const ModelOptions& model() const { return model_; }                // of a classifier of images
  const std::vector<std::string>& labels() const { return labels_; }  // by number
  bool has_classifier() const;                                        // among the weights

  // As HuggingFaceEncoder's (hub/huggingface/encoder.h).
  EncoderLoading load_into(ParameterStore& store, const std::vector<int64_t>& layers = {},
                           NonFinite nonfinite = NonFinite::refuse) const;
  void check(const ParameterStore& store) const;

 private:
  struct Plan {
    EncoderLoading loading;
    std::vector<WeightMap> found;
    std::set<std::string> used, kept;
  };
  Plan plan(const ParameterStore& store, const std::vector<int64_t>& layers) const;
  const SafetensorsEntry* find(const std::string& name) const;
  WeightSource source(NonFinite nonfinite) const;

  std::string path_, prefix_;
  ModelOptions model_;
  std::vector<std::string> labels_;
  bool classifies_ = false;  // as config.json says
  WeightFiles files_;
};

// UserError where transformers has no classifier with these options, which are resolved.
void check_huggingface_image_classifier(const ModelOptions& model);

// Writes model.safetensors, preprocessor_config.json (model.image_processor) and config.json into `folder`, which must not
// hold a model yet.
void write_huggingface_image_classifier(const std::string& folder, const ModelOptions& model,
                                        const std::vector<std::string>& labels, const ParameterStore& store,
                                        SafetensorsType type);

}  // namespace brisk
