// An architecture: everything brisk knows about one kind of model. It makes a configuration of a job's model section,
// and reads and writes other programs' files. Code outside does not ask which model.type it is.
//
//   const Architecture& architecture = architecture_of(job.model);
//   EngineOptions options{.model = architecture.training_config(job)};
//
// A new architecture is one file (the network, its configuration, a class derived from this one, and a function that
// returns it) and its line in job/architectures.def, which has its values of model.type. Options of its own are declared with
// the others (job/job_model_options.cpp). tests/api/extending/looped_architecture.cpp is a worked example.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hub/formats/safetensors.h"
#include "hub/gguf/gguf.h"
#include "image/image_input.h"
#include "infer/open/model_parts.h"
#include "infer/open/model_source.h"
#include "infer/open/trained_model.h"
#include "job/job.h"
#include "models/model_config.h"

namespace brisk {

class Architecture {
 public:
  virtual ~Architecture() = default;

  // As a job trains it: with the head of its task, with what is frozen, with adapters. `vocab_size` of the job is the
  // tokenizer's by then.
  virtual ModelConfig training_config(const Job& job) const = 0;
  // A trained model, to be used. `is_saved`: whether its files hold a parameter, for one that not every model has.
  virtual ModelConfig inference_config(const Job& job,
                                       const std::function<bool(std::string_view parameter)>& is_saved) const = 0;
  // One line for people: the settings that no table shows.
  virtual std::string describe(const Job& job) const = 0;

  // How its models read images, and what else their micro-batches have; nothing where they read texts.
  virtual ImageLayout image_layout(const ModelOptions& /*model*/) const { return {}; }

  // Parts of a new model that begin as those of trained ones.
  virtual std::vector<ModelPart> parts(const ModelOptions& /*model*/) const { return {}; }

  // As training_config() where the image encoders are frozen and what they make comes with the batch.
  virtual ModelConfig cached_config(const Job& job) const { return training_config(job); }

  // Whether training can start from a model with another head or with more layers, and not from an equal one alone.
  virtual bool starts_from_part() const { return false; }

  // A model of another program; nothing where this architecture does not read such files.
  virtual std::optional<ModelSource> open_foreign(const std::string& /*path*/) const { return std::nullopt; }

  // Export. Each is a UserError where the format cannot express the model, or nobody has written it for this
  // architecture.
  virtual void check_huggingface(const ModelOptions& model) const;
  // Returns the class that opens the folder in transformers.
  virtual std::string write_huggingface(const TrainedModel& model, const std::string& folder,
                                        SafetensorsType type) const;
  virtual void write_gguf(const TrainedModel& model, const std::string& path, GgufType type) const;
};

// The table: that of job/architectures.def, in its order.
std::span<const Architecture* const> architectures();

const Architecture& architecture_of(const ModelOptions& model);

// What a job with this model section trains.
inline ModelConfig training_config(const Job& job) { return architecture_of(job.model).training_config(job); }

}  // namespace brisk
