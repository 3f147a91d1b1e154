#include "models/text_decoder.h"

#include <cmath>

#include "models/model_config.h"

namespace brisk {

namespace {

constexpr int kTargets = 1;  // row set

Parameter* own_table(const TextDecoderConfig& config, ParameterStore& store) {
  return StackDeclaration(config.options, store)
      .table("target_embedding", config.vocab_size, config.sizes.d_model, config.options.tie_head);
}

bool has_bridge(const TextDecoderConfig& config, int64_t source_width) {
  return config.bridge && source_width != config.sizes.d_model;
}

}  // namespace

uint64_t TextDecoderConfig::fingerprint() const {
  const auto& [of_layers, of_sizes, V, bridges] = *this;
  return fingerprint_of("text_decoder", fingerprint_of_stack(of_layers), fingerprint_of_stack(of_sizes), V, bridges);
}

TextDecoder::TextDecoder(const TextDecoderConfig& config, int64_t source_width, ParameterStore& store, Parameter* table)
    : config_(config),
      table_(table != nullptr ? table : own_table(config, store)),
      stack_(config.options, config.sizes, store, "decoder",
             {.table = table_,
              .source_width = has_bridge(config, source_width) ? config.sizes.d_model : source_width,
              .causal = true}) {
  using HeadBias = StackOptions::HeadBias;
  const StackOptions& options = config.options;
  const int64_t D = config.sizes.d_model, V = config.vocab_size;
  StackDeclaration declare(options, store);
  declare.begin("", "bridge");
  if (has_bridge(config, source_width)) bridge_ = declare.matrix("bridge", D, source_width);
  declare.begin("", "head");
  if (options.head_transform) {
    head_dense_ = declare.matrix("head_dense", D, D);
    head_norm_ = declare.norm("head_norm", D);
  }
  head_.weight = options.tie_head ? table_ : declare.table("head", V, D, true);
  if (options.head_bias != HeadBias::none) {
    head_.bias = declare.vector("head.bias", V, {}, options.head_bias == HeadBias::trained);
  }
}

Value TextDecoder::bridged(Tape& tape, Value source) const {
  return bridge_.weight == nullptr ? source : linear(tape, source, bridge_.weight, {.bias = bridge_.bias});
}

Value TextDecoder::head_input(Tape& tape, Value h) const {
  if (config_.options.head_transform) {
    const LinearOptions dense{.bias = head_dense_.bias, .activation = config_.options.activation()};
    h = stack_.normed(tape, linear(tape, h, head_dense_.weight, dense), head_norm_);
  }
  if (!config_.options.scale_head) return h;
  return pointwise(tape, h, Activation::none, 1 / std::sqrt(static_cast<double>(config_.sizes.d_model)));
}

Value TextDecoder::decoded(Tape& tape, Value source) const {
  return head_input(tape, stack_.output(tape, kTargets, {.rows = bridged(tape, source)}));
}

LossValues TextDecoder::loss(Tape& tape, Value source, const LossOptions& options) const {
  LossOptions with_bias = options;
  with_bias.bias = head_.bias;
  return linear_cross_entropy(tape, decoded(tape, source), head_.weight, with_bias);
}

Value TextDecoder::logits(Tape& tape, Value source) const {
  return brisk::logits(tape, decoded(tape, source), head_.weight, head_.bias);
}

Value TextDecoder::memory(Tape& tape, Value source) const {
  const Value memory = stack_.memory(tape, bridged(tape, source));
  tape.read_back(memory);
  return memory;
}

Value TextDecoder::next_token_logits(Tape& tape, int64_t most_source_rows) const {
  return last_row_logits(tape, head_input(tape, stack_.output(tape, 0, {.longest = most_source_rows})), head_.weight,
                         head_.bias);
}

}  // namespace brisk
