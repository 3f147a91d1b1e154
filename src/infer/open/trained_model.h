// A trained model opened for use, with its tokenizer.
//
//   const auto model = open_trained_model("runs/bible", "");
//   Generator generator(model->causal(), model->store, *model->tokenizer);
#pragma once

#include <memory>
#include <string>

#include "data/table/labels.h"
#include "hub/finite.h"
#include "job/job.h"
#include "models/model.h"
#include "models/model_config.h"
#include "tensor/parameter.h"
#include "text/tokenizer.h"

namespace brisk {

struct TrainedModel {
  Job job;
  std::unique_ptr<Tokenizer> tokenizer;         // none of a classifier of images
  std::unique_ptr<Tokenizer> target_tokenizer;  // of a model of text to text, where it writes with another one; or none
  ParameterStore store;
  ModelConfig config;
  std::unique_ptr<Model> model;
  LabelSet labels;     // of a classifier
  std::string source;  // the checkpoint or file it was read from
  std::string path;    // as it was asked for
  std::string kind;    // what that is: "Hugging Face folder"

  const CausalModel& causal() const;            // UserError where it does not continue texts
  const ConditionalModel& conditional() const;  // UserError where it reads no source to write a text of
  // Of what it writes.
  const Tokenizer& writes_with() const { return target_tokenizer ? *target_tokenizer : *tokenizer; }
};

// `path`: a run directory (its best checkpoint), one of its checkpoints/step-... directories, a Hugging Face folder, a
// GGUF file, or a llama2.c model file with the only tok*.bin next to it. `tokenizer_path`, where given, replaces the
// tokenizer found there. Products run in fp32 or, `as_trained`, in the format that the run chose, where this machine
// has instructions for it: store.compute_type() says which. `device`: as --device has it. Weights that are not finite are
// refused, or allowed.
std::unique_ptr<TrainedModel> open_trained_model(const std::string& path, const std::string& tokenizer_path,
                                                 bool as_trained = false, const std::string& device = "cpu",
                                                 NonFinite nonfinite = NonFinite::refuse);

}  // namespace brisk
