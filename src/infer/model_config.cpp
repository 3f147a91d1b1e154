#include "infer/model_config.h"

#include <fmt/format.h>

#include <algorithm>

#include "job/job_task.h"

namespace brisk {

namespace {

// What decoders and encoders have alike.
template <typename Config>
Config config_of(const ModelOptions& model) {
  Config config;
  config.vocab_size = model.vocab_size;
  config.d_model = model.d_model;
  config.num_layers = model.num_layers;
  config.num_heads = model.num_heads;
  config.d_ff = model.d_ff;
  config.max_length = model.context;
  config.norm_epsilon = model.norm_epsilon;
  config.dropout = model.dropout;
  using FeedForward = typename Config::FeedForward;
  config.feed_forward = model.activation == "relu"       ? FeedForward::relu
                        : model.activation == "gelu_erf" ? FeedForward::gelu_erf
                                                         : FeedForward::gelu_tanh;
  return config;
}

// An encoder with the head of its task and nothing frozen.
EncoderConfig plain_encoder_config(const Job& job) {
  ModelOptions model = job.model;
  resolve_encoder(model);
  const bool roberta = model.type == "roberta", distilbert = model.type == "distilbert";
  auto config = config_of<EncoderConfig>(model);
  config.position_offset = roberta ? 2 : 0;
  config.types = model.token_types;
  config.attention_dropout = model.attention_dropout;
  config.classifier_dropout = model.classifier_dropout;
  using Head = EncoderConfig::Head;
  config.head = job.task == "mlm" ? Head::mlm : roberta ? Head::roberta : distilbert ? Head::relu : Head::pooler_tanh;
  config.num_labels = std::max<int64_t>(1, model.num_labels);
  config.first_row_only = job.training.first_row_only;
  return config;
}

}  // namespace

DecoderConfig decoder_config(const ModelOptions& model) {
  auto config = config_of<DecoderConfig>(model);
  config.num_kv_heads = model.num_kv_heads;
  config.norm = model.norm == "rmsnorm" ? NormKind::rms : NormKind::layer;
  if (model.activation == "swiglu") config.feed_forward = DecoderConfig::FeedForward::swiglu;
  using Positions = DecoderConfig::Positions;
  config.positions = model.positions == "rotary" ? Positions::rotary
                     : model.positions == "none" ? Positions::none
                                                 : Positions::learned;
  config.rope_theta = model.rope_theta;
  config.bias = model.bias;
  config.tie_embeddings = model.tie_embeddings;
  return config;
}

DecoderConfig training_config(const Job& job) {
  DecoderConfig config = decoder_config(job.model);
  config.trained_layers = job.training.train_layers;
  config.lora_rank = job.training.lora_rank;
  config.lora_scale = adapter_scale(job.training);
  if (!job.training.lora_matrices.empty()) config.lora_matrices = job.training.lora_matrices;
  return config;
}

EncoderConfig encoder_config(const Job& job) {
  EncoderConfig config = plain_encoder_config(job);
  config.frozen_embeddings = job.training.freeze >= 0;
  config.frozen_layers = std::max<int64_t>(0, job.training.freeze);
  config.frozen_dropout = job.training.frozen_dropout;
  return config;
}

ModelConfig trained_config(const Job& job) {
  if (!job.model.is_encoder()) return decoder_config(job.model);
  EncoderConfig config = plain_encoder_config(job);
  if (has_no_head(job)) config.head = EncoderConfig::Head::none;
  return config;
}

bool has_no_head(const Job& job) {
  return job.model.is_encoder() && job.task == "classify" && job.model.num_labels == 0;
}

std::string encoder_text(const Job& job) {
  const EncoderConfig config = encoder_config(job);
  return fmt::format("{}, {}, dropout {:g}, of attention {:g}{}", job.model.type, job.model.activation, config.dropout,
                     config.attention_dropout,
                     job.task == "classify" ? fmt::format(", of the classifier {:g}", config.classifier_dropout) : "");
}

std::optional<MuonOptions> muon_options(const TrainingOptions& training) {
  if (training.optimizer != "muon") return std::nullopt;
  return MuonOptions{.rate_ratio = training.muon_learning_rate / training.learning_rate,
                     .momentum = training.muon_momentum,
                     .weight_decay = training.weight_decay};
}

double adapter_scale(const TrainingOptions& training) {
  return training.lora_rank > 0 ? training.lora_alpha / static_cast<double>(training.lora_rank) : 0;
}

Schedule schedule_of(const TrainingOptions& training, int64_t total_steps) {
  Schedule schedule;
  schedule.kind = training.lr_scheduler == "constant" ? ScheduleKind::constant
                  : training.lr_scheduler == "linear" ? ScheduleKind::linear
                  : training.lr_scheduler == "wsd"    ? ScheduleKind::wsd
                                                      : ScheduleKind::cosine;
  schedule.rate = training.learning_rate;
  schedule.final_ratio = training.min_learning_rate_ratio;
  schedule.decay_ratio = training.decay_ratio;
  schedule.warmup_steps = warmup_steps_of(training, total_steps);
  schedule.total_steps = total_steps;
  return schedule;
}

}  // namespace brisk
