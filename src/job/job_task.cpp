#include "job/job_task.h"

#include <cmath>

#include "base/error.h"

namespace brisk {

namespace {

void refuse(bool given, const Job& job, const char* key, const std::string& why) {
  if (given) user_error("{} is nothing for task {}: {}; leave it out", key, job.task, why);
}

void check_encoder(const Job& job) {
  const ModelOptions& model = job.model;
  const TrainingOptions& training = job.training;
  const auto shape = [&](bool otherwise, const char* key, const std::string& found, const char* expected) {
    if (!otherwise) return;
    user_error("model.{} = {}: a {} has {}; leave it out", key, found, model.type, expected);
  };
  shape(model.norm != "layernorm", "norm", model.norm, "layernorm");
  shape(model.positions != "learned", "positions", model.positions, "learned positions");
  shape(model.activation == "swiglu", "activation", model.activation, "gelu_erf, gelu or relu");
  shape(!model.bias, "bias", "false", "biases");
  shape(!model.tie_embeddings, "tie_embeddings", "false", "the embedding as its output projection");
  shape(model.num_kv_heads != 0 && model.num_heads != 0 && model.num_kv_heads != model.num_heads, "num_kv_heads",
        fmt::format("{}", model.num_kv_heads), "as many as num_heads");
  refuse(training.lora_rank > 0, job, "training.lora_rank", "encoders have no adapters here");
  refuse(training.train_layers > 0, job, "training.train_layers", "an encoder's layers are frozen by training.freeze");
  refuse(training.sample_tokens > 0 || !training.sample_prompts.empty(), job, "training.sample_prompts",
         "an encoder does not continue texts");
  if (training.frozen_dropout && training.freeze < 0)
    user_error("training.frozen_dropout is about what training.freeze freezes, and nothing is frozen; leave it out");
  if (training.freeze < 0) return;
  if (model.from.empty())
    user_error("training.freeze keeps weights that were never trained: name the trained model with model.from");
  if (training.freeze > model.num_layers) {
    user_error("training.freeze = {}, but the model has {} layers: use {} or less", training.freeze, model.num_layers,
               model.num_layers);
  }
}

}  // namespace

void check_task(const Job& job) {
  const ModelOptions& model = job.model;
  const TrainingOptions defaults, &training = job.training;
  const bool language_model = job.task == "language_model", classify = job.task == "classify";
  if (language_model && model.is_encoder()) {
    user_error("model.type = {} is an encoder, which task language_model cannot train: use task classify or mlm",
               model.type);
  }
  if (!language_model && !model.is_encoder()) {
    user_error("task {} needs an encoder, and model.type is {}: use bert, distilbert or roberta", job.task, model.type);
  }
  refuse(!classify && training.class_weights != defaults.class_weights, job, "training.class_weights",
         "it has no classes");
  refuse(!classify && model.num_labels != 0, job, "model.num_labels", "it has no classes");
  refuse(!classify && !training.teacher.empty(), job, "training.teacher", "a teacher's answers are classes");
  if (training.teacher.empty() && (training.distillation_weight != defaults.distillation_weight ||
                                   training.distillation_temperature != defaults.distillation_temperature)) {
    user_error(
        "training.distillation_weight and distillation_temperature say how to learn from a teacher, and there is none: "
        "name it with training.teacher");
  }
  refuse(!classify && !job.data.label_field.empty(), job, "data.label_field", "it has no labels");
  refuse(!classify && !job.data.pair_field.empty(), job, "data.pair_field", "it has no pairs of texts");
  refuse(job.task != "mlm" && training.mlm_probability != defaults.mlm_probability, job, "training.mlm_probability",
         "it masks nothing");
  refuse(job.task != "mlm" && training.whole_word_masking, job, "training.whole_word_masking", "it masks nothing");
  if (!language_model) {
    check_encoder(job);
    return;
  }
  refuse(training.freeze >= 0, job, "training.freeze", "a decoder's last layers are trained by training.train_layers");
  refuse(training.frozen_dropout, job, "training.frozen_dropout", "a decoder drops as model.dropout says");
  refuse(!training.cache_frozen, job, "training.cache_frozen", "nothing of a decoder is kept between epochs");
  refuse(!training.first_row_only, job, "training.first_row_only", "all rows of a decoder are used");
  refuse(model.attention_dropout >= 0, job, "model.attention_dropout", "a decoder drops as model.dropout says");
  refuse(model.classifier_dropout >= 0, job, "model.classifier_dropout", "it has no classes");
  refuse(model.token_types >= 0, job, "model.token_types", "a decoder has none");
}

void resolve_encoder(ModelOptions& model) {
  if (!model.is_encoder()) return;
  if (model.token_types < 0) model.token_types = model.type == "bert" ? 2 : model.type == "roberta" ? 1 : 0;
  if (model.attention_dropout < 0) model.attention_dropout = model.dropout;
  if (model.classifier_dropout < 0) model.classifier_dropout = model.dropout;
}

double encoder_learning_rate(const Job& job) {
  if (job.task == "language_model") return 0;
  const bool classify = job.task == "classify";
  if (!job.model.from.empty()) return classify ? 5e-5 : 1e-4;
  return (classify ? 5e-4 : 1e-3) * std::sqrt(256.0 / static_cast<double>(job.model.d_model));
}

}  // namespace brisk
