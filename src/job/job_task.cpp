#include "job/job_task.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files/files.h"
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
  if (!trains_type(traits_of_task(job.task), model.type)) {
    user_error("task {} cannot train model.type = {}: use {}, or task {}", job.task, model.type,
               alternatives(types_for_task(job.task)), alternatives(tasks_for_type(model.type)));
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

void resolve_image_encoder(ModelOptions& model) {
  if (!reads_images(model.type)) return;
  const auto resolve_processor = [](std::string& processor, const std::string& from) {
    const std::string beside = from + "/preprocessor_config.json";
    if (processor.empty() && !from.empty() && file_exists(beside)) processor = beside;
    if (!processor.empty() && !processor.starts_with("{")) processor = read_file(processor, file_kind::config);
  };
  resolve_processor(model.image_processor, model.image_encoder_from);
  resolve_processor(model.layout_processor, model.layout_encoder_from);
  if (model.image_size.empty() && model.image_processor.empty()) model.image_size = {224};
  if (model.image_size.size() == 1) model.image_size.push_back(model.image_size.front());
  if (model.image_encoder != "swin") return;
  if (model.encoder_depths.empty()) model.encoder_depths = {2, 2, 6, 2};
  const int64_t first_width = model.encoder_d_model > 0 ? model.encoder_d_model : model.d_model;
  const auto stages = std::ssize(model.encoder_depths);
  constexpr int64_t kMostStages = 16, kHeadWidth = 32;
  if (stages > kMostStages) user_error("model.encoder_depths: {} stages: use {} or fewer", stages, kMostStages);
  if (model.encoder_stage_heads.empty()) {
    for (int64_t stage = 0, width = first_width; stage < stages; ++stage, width *= 2) {
      model.encoder_stage_heads.push_back(std::max<int64_t>(1, width / kHeadWidth));
    }
  }
  if (std::ssize(model.encoder_stage_heads) != stages) {
    user_error("model.encoder_stage_heads has {} numbers, and model.encoder_depths {}: give one for each stage",
               model.encoder_stage_heads.size(), stages);
  }
  if (model.is_encoder()) {
    model.num_layers = std::accumulate(model.encoder_depths.begin(), model.encoder_depths.end(), int64_t{0});
    model.num_heads = model.encoder_stage_heads.front();
  }
}

void resolve_encoder_decoder(ModelOptions& model) {
  if (!model.is_encoder_decoder()) return;
  if (model.encoder_d_model == 0) model.encoder_d_model = model.d_model;
  if (model.encoder_layers == 0) model.encoder_layers = model.num_layers;
  if (model.encoder_heads == 0) model.encoder_heads = model.num_heads;
  if (model.encoder_d_ff == 0) model.encoder_d_ff = model.d_ff;
  if (model.source_context == 0) model.source_context = model.context;
  if (model.token_types < 0) model.token_types = 0;
  if (model.attention_dropout < 0) model.attention_dropout = model.dropout;
}

void check_encoder_decoder(const ModelOptions& model) {
  if (!model.is_encoder_decoder()) return;
  const bool reads_texts = !reads_images(model.type);
  if (reads_texts && model.head_width == 0 && model.encoder_d_model % model.encoder_heads != 0) {
    user_error(
        "model.encoder_d_model = {} is not divisible by model.encoder_heads = {}; each head takes an equal share of the "
        "width: use another number of heads, or give model.head_width",
        model.encoder_d_model, model.encoder_heads);
  }
  if (reads_texts && model.share_embeddings && model.encoder_d_model != model.d_model) {
    user_error(
        "model.share_embeddings: one table cannot be {} wide for the source and {} for the target (model.encoder_d_model, "
        "model.d_model): use the same width, or share_embeddings = false",
        model.encoder_d_model, model.d_model);
  }
  for (const auto& [key, width] :
       {std::pair{"model.d_model", model.d_model}, {"model.encoder_d_model", model.encoder_d_model}}) {
    if (model.positions.ends_with("sinusoidal") && width % 2 != 0 && (reads_texts || width == model.d_model)) {
      user_error("{} = {}: sinusoidal positions need an even width, for pairs of a sine and a cosine: use {}", key,
                 width, width + 1);
    }
  }
  if (model.positions == "relative" && model.relative_distance <= model.relative_buckets / 2) {
    user_error("model.relative_distance = {} must be more than half of model.relative_buckets = {}: use {} or more",
               model.relative_distance, model.relative_buckets, model.relative_buckets / 2 + 1);
  }
}

double encoder_learning_rate(const Job& job) {
  const TaskTraits& task = traits_of_task(job.task);
  if (!task.trains_encoder) return 0;
  const bool classify = task.has_labels;
  if (!job.model.from.empty()) return classify ? 5e-5 : 1e-4;
  return (classify ? 5e-4 : 1e-3) * std::sqrt(256.0 / static_cast<double>(job.model.d_model));
}

}  // namespace brisk
