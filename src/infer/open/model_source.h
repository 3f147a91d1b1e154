// Something on disk that holds a trained model, of whichever program.
//
//   const ModelSource source = open_model_source("runs/bible");     // or a checkpoint, a Hugging Face folder, a .gguf
//   job.model = source.model;                                       // or llama2.c file
//   std::unique_ptr<Tokenizer> tokenizer = source.tokenizer();
//   source.load_into(engine.parameters(), NonFinite::refuse);
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "hub/finite.h"
#include "job/job.h"
#include "models/model_config.h"
#include "tensor/parameter.h"
#include "text/tokenizer.h"

namespace brisk {

inline constexpr const char* kRunSource = "run";  // the kind of brisk's own

struct ModelSource {
  std::string kind;    // "Hugging Face folder", for messages
  std::string place;   // the checkpoint or file that is read
  Job job;             // a run's own; of other sources what they say about the model, the rest defaults
  ModelOptions model;  // vocab_size and context included
  ModelConfig config;  // of the model as load_into fills it
  // UserError where there is none that brisk reads.
  std::function<std::unique_ptr<Tokenizer>()> tokenizer;
  // Of what a model of text to text writes; none: the same.
  std::function<std::unique_ptr<Tokenizer>()> target_tokenizer = nullptr;
  // UserError where the weights are not those of `config`, whose parameters the store has, without memory. Asked by
  // open_model_source().
  std::function<void(const ParameterStore&)> check = nullptr;
  // Fills the masters of a model built from `config`, adapters merged; compute copies are stale afterwards. UserError
  // where any is missing or not finite.
  std::function<void(ParameterStore&, NonFinite)> load_into;
  // The same for a model that is trained from there, which may have another head and fewer layers (layer l begins as
  // layer layers[l]; empty: as they are): what is missing keeps its values, and the lines say so.
  std::function<std::vector<std::string>(ParameterStore&, const std::vector<int64_t>& layers, NonFinite)> start;
  std::vector<std::string> labels;  // of a classifier, in the order of its outputs
};

// What a foreign model says about itself, as a source without its readers.
ModelSource foreign_source(const std::string& kind, const std::string& path, const ModelOptions& model);

// An encoder that was imported without a head: its job is that of a classifier with no classes yet.
bool has_no_head(const Job& job);

// A run directory stands for its best checkpoint. UserError where it is none of these, or its weights are not those of its
// configuration.
ModelSource open_model_source(const std::string& path);

// UserError where the model cannot have been trained with the tokenizer: it has ids beyond the embedding or fewer than half
// of it, or lacks the special tokens that the model's task needs. Asked for `source.tokenizer()`, and for another one
// before it is used instead.
void check_tokenizer(const Tokenizer& tokenizer, const ModelOptions& model, const std::string& task,
                     const std::string& place);

// How a job that starts from a model meets weights that are not finite.
inline NonFinite nonfinite_of(const Job& job) {
  return job.model.allow_nonfinite ? NonFinite::allow : NonFinite::refuse;
}

// Of a model with more layers, those that one with `layers` layers begins as: evenly spread, from the first.
std::vector<int64_t> spread_layers(int64_t layers_there, int64_t layers);

// For a job with model.from: its other model keys and max_length become those of the source, and a line says so.
// A run that is resumed has them in its job.json: the source may be gone by then. UserError that names every key of the
// job that says otherwise. Comes before resolve_defaults(); without model.from it does nothing.
std::vector<std::string> take_model_from_source(Job& job, bool resume);

}  // namespace brisk
