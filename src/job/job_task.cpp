#include "job/job_task.h"

#include <cmath>

#include "base/error.h"
#include "job/job_conditions.h"
#include "job/job_options.h"

namespace brisk {

namespace {

void check_encoder(const Job& job) {
  const ModelOptions& model = job.model;
  const TrainingOptions& training = job.training;
  const auto shape = [&](bool otherwise, const char* key, const std::string& found, const char* expected) {
    if (!otherwise) return;
    user_error("model.{} = {} is not possible: {} models have {}; remove it", key, found, model.type, expected);
  };
  shape(model.norm != "layernorm", "norm", model.norm, "layernorm");
  shape(model.positions != "learned", "positions", model.positions, "learned positions");
  shape(model.activation == "swiglu", "activation", model.activation, "gelu_erf, gelu or relu");
  shape(!model.bias, "bias", "false", "biases");
  shape(!model.tie_embeddings, "tie_embeddings", "false", "the embedding as its output projection");
  if (training.freeze > model.num_layers) {
    user_error("training.freeze = {}, but the model has {} layers: use {} or less", training.freeze, model.num_layers,
               model.num_layers);
  }
}

}  // namespace

void check_task(const Job& job) {
  const ModelOptions& model = job.model;
  const bool needs_encoder = traits_of_task(job.task).trains_encoder;
  if (!needs_encoder && model.is_encoder()) {
    user_error("model.type = {} is an encoder, which task {} cannot train: use task {}", model.type, job.task,
               alternatives(tasks_for_type(model.type)));
  }
  if (needs_encoder && !model.is_encoder()) {
    user_error("task {} needs an encoder, and model.type is {}: use {}", job.task, model.type,
               alternatives(types_for_task(job.task)));
  }
  Job copy = job, plain;
  check_options_apply(declare_job_options(copy), declare_job_options(plain));
  if (needs_encoder) check_encoder(job);
}

void resolve_encoder(ModelOptions& model) {
  if (!model.is_encoder()) return;
  if (model.token_types < 0) model.token_types = model.type == "bert" ? 2 : model.type == "roberta" ? 1 : 0;
  if (model.attention_dropout < 0) model.attention_dropout = model.dropout;
  if (model.classifier_dropout < 0) model.classifier_dropout = model.dropout;
}

double encoder_learning_rate(const Job& job) {
  const TaskTraits& task = traits_of_task(job.task);
  if (!task.trains_encoder) return 0;
  const bool classify = task.has_labels;
  if (!job.model.from.empty()) return classify ? 5e-5 : 1e-4;
  return (classify ? 5e-4 : 1e-3) * std::sqrt(256.0 / static_cast<double>(job.model.d_model));
}

}  // namespace brisk
