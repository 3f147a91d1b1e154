#include "infer/architecture/text_decoder_options.h"

namespace brisk {

StackOptions stack_options(const ModelOptions& model) {
  StackOptions options;
  options.pre_norm = model.norm_position == "pre";
  options.embedding_norm = model.embedding_norm;
  options.norm = model.norm == "rmsnorm" ? NormKind::rms : NormKind::layer;
  options.norm_epsilon = model.norm_epsilon;
  using FeedForward = StackOptions::FeedForward;
  options.feed_forward = model.activation == "relu"       ? FeedForward::relu
                         : model.activation == "gelu"     ? FeedForward::gelu_tanh
                         : model.activation == "gelu_erf" ? FeedForward::gelu_erf
                         : model.activation == "swish"    ? FeedForward::silu
                         : model.activation == "geglu"    ? FeedForward::gated_gelu
                                                          : FeedForward::gated_silu;
  using Positions = StackOptions::Positions;
  options.positions = model.positions == "learned"                  ? Positions::learned
                      : model.positions == "sinusoidal"             ? Positions::sinusoidal
                      : model.positions == "interleaved_sinusoidal" ? Positions::interleaved_sinusoidal
                      : model.positions == "relative"               ? Positions::relative
                      : model.positions == "rotary"                 ? Positions::rotary
                                                                    : Positions::none;
  options.position_offset = model.position_offset;
  options.relative_buckets = model.relative_buckets;
  options.relative_distance = model.relative_distance;
  options.rope_theta = model.rope_theta;
  options.scale_embeddings = model.scale_embeddings;
  options.scale_attention = model.scale_attention;
  options.scale_head = model.scale_outputs;
  options.bias = model.bias;
  options.tie_head = model.tie_embeddings;
  using HeadBias = StackOptions::HeadBias;
  options.head_bias = model.output_bias == "fixed"     ? HeadBias::fixed
                      : model.output_bias == "trained" ? HeadBias::trained
                                                       : HeadBias::none;
  options.head_transform = model.output_transform;
  options.first_token = model.first_token;
  options.dropout = model.dropout;
  options.attention_dropout = model.attention_dropout;
  options.activation_dropout = options.is_gated() ? 0 : model.activation_dropout;
  options.final_dropout = options.pre_norm ? model.final_dropout : 0;
  return options;
}

TextDecoderConfig text_decoder_config(const ModelOptions& model) {
  return {.options = stack_options(model),
          .sizes = {.d_model = model.d_model,
                    .num_layers = model.num_layers,
                    .num_heads = model.num_heads,
                    .head_width = model.head_width > 0 ? model.head_width : model.d_model / model.num_heads,
                    .d_ff = model.d_ff,
                    .max_length = model.context,
                    .types = model.token_types},
          .vocab_size = model.vocab_size,
          .bridge = model.bridge};
}

}  // namespace brisk
