// Encoder-decoders: the original transformer, Marian, BART, T5 and two BERTs by options (models/encoder_decoder.h); Hugging
// Face folders.
#include <fmt/format.h>

#include "base/files/files.h"
#include "hub/huggingface/encoder_decoder.h"
#include "infer/architecture/architecture.h"
#include "job/job_task.h"
#include "models/encoder_decoder.h"

namespace brisk {

namespace {

class EncoderDecoderArchitecture final : public Architecture {
 public:
  ModelConfig training_config(const Job& job) const override { return plain_config(job.model); }

  ModelConfig inference_config(const Job& job, const std::function<bool(std::string_view)>& is_saved) const override {
    EncoderDecoderConfig config = plain_config(job.model);
    config.lone_pooler = is_saved("pooler.weight");
    return config;
  }

  std::string describe(const Job& job) const override {
    const ModelOptions& model = job.model;
    const EncoderDecoderConfig config = plain_config(model);
    return fmt::format("{}-norm {}, {}, {} positions, {}, dropout {:g}, of attention {:g}", model.norm_position,
                       model.norm, model.activation, model.positions,
                       config.share_embeddings && config.tie_head ? "one table of embeddings and outputs"
                       : config.share_embeddings                  ? "shared embeddings, untied output projection"
                       : config.tie_head                          ? "outputs tied to the target's embeddings"
                                                                  : "untied output projection",
                       config.dropout, config.attention_dropout);
  }

  std::optional<ModelSource> open_foreign(const std::string& path) const override {
    if (!is_huggingface_encoder_decoder(path)) return std::nullopt;
    const auto folder = std::make_shared<HuggingFaceEncoderDecoder>(path);
    ModelSource source = foreign_source("Hugging Face folder", path, folder->model());
    source.job.task = "translate";
    source.tokenizer = [path] { return load_tokenizer(path); };
    if (is_directory(path + "/target")) source.target_tokenizer = [path] { return load_tokenizer(path + "/target"); };
    source.check = [folder](const ParameterStore& store) { folder->check(store); };
    source.load_into = [folder](ParameterStore& store, NonFinite nonfinite) { folder->load_into(store, nonfinite); };
    source.config = plain_config(source.model);
    return source;
  }

  void check_huggingface(const ModelOptions& model) const override { encoder_decoder_config_for(model); }

  std::string write_huggingface(const TrainedModel& model, const std::string& folder,
                                SafetensorsType type) const override {
    ModelOptions resolved = model.job.model;
    resolve_encoder_decoder(resolved);
    write_huggingface_encoder_decoder(folder, resolved, model.store, *model.tokenizer, model.writes_with(), type,
                                      model.job.training.max_length);
    return class_of(encoder_decoder_config_for(resolved).shape);
  }

 private:
  static EncoderDecoderConfig plain_config(ModelOptions model) {
    resolve_encoder_decoder(model);
    EncoderDecoderConfig config;
    const auto stack = [&model](int64_t width, int64_t layers, int64_t heads, int64_t d_ff, int64_t longest) {
      return EncoderDecoderConfig::Stack{.d_model = width,
                                         .num_layers = layers,
                                         .num_heads = heads,
                                         .head_width = model.head_width > 0 ? model.head_width : width / heads,
                                         .d_ff = d_ff,
                                         .max_length = longest,
                                         .types = model.token_types};
    };
    config.encoder = stack(model.encoder_d_model, model.encoder_layers, model.encoder_heads, model.encoder_d_ff,
                           model.source_context);
    config.decoder = stack(model.d_model, model.num_layers, model.num_heads, model.d_ff, model.context);
    config.target_vocab_size = model.vocab_size;
    config.source_vocab_size =
        model.share_embeddings || model.source_vocab_size == 0 ? model.vocab_size : model.source_vocab_size;
    config.pre_norm = model.norm_position == "pre";
    config.embedding_norm = model.embedding_norm;
    config.norm = model.norm == "rmsnorm" ? NormKind::rms : NormKind::layer;
    config.norm_epsilon = model.norm_epsilon;
    using FeedForward = EncoderDecoderConfig::FeedForward;
    config.feed_forward = model.activation == "relu"       ? FeedForward::relu
                          : model.activation == "gelu"     ? FeedForward::gelu_tanh
                          : model.activation == "gelu_erf" ? FeedForward::gelu_erf
                          : model.activation == "swish"    ? FeedForward::silu
                          : model.activation == "geglu"    ? FeedForward::gated_gelu
                                                           : FeedForward::gated_silu;
    using Positions = EncoderDecoderConfig::Positions;
    config.positions = model.positions == "learned"                  ? Positions::learned
                       : model.positions == "sinusoidal"             ? Positions::sinusoidal
                       : model.positions == "interleaved_sinusoidal" ? Positions::interleaved_sinusoidal
                       : model.positions == "relative"               ? Positions::relative
                       : model.positions == "rotary"                 ? Positions::rotary
                                                                     : Positions::none;
    config.position_offset = model.position_offset;
    config.relative_buckets = model.relative_buckets;
    config.relative_distance = model.relative_distance;
    config.rope_theta = model.rope_theta;
    config.scale_embeddings = model.scale_embeddings;
    config.scale_attention = model.scale_attention;
    config.scale_head = model.scale_outputs;
    config.bias = model.bias;
    config.share_embeddings = model.share_embeddings;
    config.tie_head = model.tie_embeddings;
    using HeadBias = EncoderDecoderConfig::HeadBias;
    config.head_bias = model.output_bias == "fixed"     ? HeadBias::fixed
                       : model.output_bias == "trained" ? HeadBias::trained
                                                        : HeadBias::none;
    config.head_transform = model.output_transform;
    config.first_token = model.first_token;
    config.dropout = model.dropout;
    config.attention_dropout = model.attention_dropout;
    config.activation_dropout = config.is_gated() ? 0 : model.activation_dropout;
    return config;
  }
};

}  // namespace

const Architecture& encoder_decoder_architecture() {
  static const EncoderDecoderArchitecture architecture;
  return architecture;
}

}  // namespace brisk
