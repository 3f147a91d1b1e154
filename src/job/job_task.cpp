#include "job/job_task.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/text/plural.h"
#include "job/job_conditions.h"
#include "job/job_options.h"

namespace brisk {

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
  if (model.is_encoder() && job.training.freeze > model.num_layers) {
    user_error("training.freeze = {}, but the model has {}: use {} or less", job.training.freeze,
               plural(model.num_layers, "layer"), model.num_layers);
  }
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
