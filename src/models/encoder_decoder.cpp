#include "models/encoder_decoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"

namespace brisk {

namespace {

using Config = EncoderDecoderConfig;

constexpr int kSource = 0, kTarget = 1;  // row sets

Activation activation_of(Config::FeedForward kind) {
  switch (kind) {
    case Config::FeedForward::relu: return Activation::relu;
    case Config::FeedForward::gelu_tanh:
    case Config::FeedForward::gated_gelu: return Activation::gelu_tanh;
    case Config::FeedForward::gelu_erf: return Activation::gelu_erf;
    case Config::FeedForward::silu:
    case Config::FeedForward::gated_silu: return Activation::silu;
  }
  return Activation::none;
}

double root(int64_t width) { return std::sqrt(static_cast<double>(width)); }

}  // namespace

// Declares the parameters, those of one stack after the other.
class EncoderDecoder::Declaration {
 public:
  Declaration(const Config& config, ParameterStore& store) : config_(config), store_(store) {}

  // What is declared next is of this part of the model, and counted in this component of it.
  void begin(std::string prefix, std::string component) {
    prefix_ = std::move(prefix);
    component_ = std::move(component);
  }

  // With sums of unit variance after the scaling, where there is one, and logits of unit variance where it is the head.
  Parameter* table(const std::string& name, int64_t rows, int64_t D, bool multiplies) {
    return store_.add({.name = prefix_ + name + ".weight",
                       .rows = rows,
                       .cols = D,
                       .decays = true,
                       .multiplies = multiplies,
                       .initial = {Initial::Kind::normal, config_.scale_embeddings ? 1 / root(D) : 0.02},
                       .component = name});
  }

  Matrix matrix(const std::string& name, int64_t rows, int64_t cols, double deviation = 0.02,
                std::vector<int64_t> parts = {}) {
    Parameter* weight = store_.add({.name = prefix_ + name + ".weight",
                                    .rows = rows,
                                    .cols = cols,
                                    .decays = true,
                                    .multiplies = true,
                                    .initial = {Initial::Kind::normal, deviation},
                                    .parts = std::move(parts),
                                    .hidden = true,
                                    .component = component_});
    return {weight, config_.bias ? vector(name + ".bias", rows) : nullptr};
  }

  Norm norm(const std::string& name, int64_t D) {
    const std::string before = std::exchange(component_, "norms");
    Norm result{vector(name + ".gain", D, {Initial::Kind::ones}), nullptr};
    if (config_.norm == NormKind::layer && config_.bias) result.bias = vector(name + ".bias", D);
    component_ = before;
    return result;
  }

  Parameter* vector(const std::string& name, int64_t cols, Initial initial = {}, bool trained = true) {
    return store_.add(
        {.name = prefix_ + name, .cols = cols, .initial = initial, .trained = trained, .component = component_});
  }

  // All but the token table. `sums`: what its layers add to the stream.
  Stack stack(const std::string& name, const Config::Stack& sizes, bool decodes) {
    const int64_t D = sizes.d_model, F = sizes.d_ff, inner = sizes.num_heads * sizes.head_width;
    const double sums = static_cast<double>((decodes ? 3 : 2) * sizes.num_layers);
    // As in the decoder alone (models/decoder.cpp): what writes to a stream without a norm of its own starts smaller.
    const double shrunk = config_.pre_norm ? 0.02 / std::sqrt(sums) : 0.02;
    Stack stack{.sizes = sizes};
    begin(name + ".", name + " positions");
    stack.positions = positions(sizes);
    if (sizes.types > 0) {
      stack.types = store_.add({.name = prefix_ + "types.weight",
                                .rows = sizes.types,
                                .cols = D,
                                .decays = true,
                                .initial = {Initial::Kind::normal, 0.02},
                                .component = "token types"});
    }
    if (config_.positions == Config::Positions::relative) {
      stack.relative = store_.add({.name = prefix_ + "relative.weight",
                                   .rows = config_.relative_buckets,
                                   .cols = sizes.num_heads,
                                   .initial = {Initial::Kind::normal, 0.02},
                                   .component = component_});
    }
    if (config_.embedding_norm) stack.embedding_norm = norm("embedding_norm", D);
    for (int64_t l = 0; l < sizes.num_layers; ++l) {
      Layer layer{};
      begin(fmt::format("{}.layers.{}.", name, l), name + " attention projections");
      layer.qkv = matrix("qkv", 3 * inner, D, 0.02, {inner, inner, inner});
      layer.attention_out = matrix("attention_out", D, inner, shrunk);
      layer.attention_norm = norm("attention_norm", D);
      if (decodes) {
        component_ = "cross-attention projections";
        const int64_t read = bridged() ? D : config_.encoder.d_model;
        layer.cross_q = matrix("cross_q", inner, D);
        layer.cross_kv = matrix("cross_kv", 2 * inner, read, 0.02, {inner, inner});
        layer.cross_out = matrix("cross_out", D, inner, shrunk);
        layer.cross_norm = norm("cross_norm", D);
      }
      component_ = name + " feed-forward";
      const bool gated = config_.is_gated();
      layer.up = matrix("up", gated ? 2 * F : F, D, 0.02, gated ? std::vector<int64_t>{F, F} : std::vector<int64_t>{});
      layer.down = matrix("down", D, F, shrunk);
      layer.feed_forward_norm = norm("feed_forward_norm", D);
      stack.layers.push_back(layer);
    }
    begin(name + ".", "norms");
    if (config_.pre_norm) stack.final_norm = norm("final_norm", D);
    return stack;
  }

  bool bridged() const { return config_.encoder.d_model != config_.decoder.d_model; }

 private:
  Parameter* positions(const Config::Stack& sizes) {
    using Positions = Config::Positions;
    const bool learned = config_.positions == Positions::learned;
    const bool interleaved = config_.positions == Positions::interleaved_sinusoidal;
    if (!learned && !interleaved && config_.positions != Positions::sinusoidal) return nullptr;
    return store_.add({.name = prefix_ + "positions.weight",
                       .rows = config_.position_offset + sizes.max_length,
                       .cols = sizes.d_model,
                       .decays = learned,
                       .initial = {learned       ? Initial::Kind::normal
                                   : interleaved ? Initial::Kind::interleaved_sinusoids
                                                 : Initial::Kind::sinusoids,
                                   learned ? 0.02 : 0},
                       .trained = learned,
                       .component = component_});
  }

  const Config& config_;
  ParameterStore& store_;
  std::string prefix_, component_;
};

EncoderDecoder::EncoderDecoder(const Config& config, ParameterStore& store) : config_(config) {
  const int64_t D = config.decoder.d_model;
  BRISK_CHECK(
      !config.share_embeddings || (config.encoder.d_model == D && config.source_vocab_size == config.target_vocab_size),
      "one table of {} x {} and of {} x {}", config.source_vocab_size, config.encoder.d_model, config.target_vocab_size,
      D);
  Declaration declare(config, store);
  Parameter *source, *target;
  if (config.share_embeddings) {
    source = target = declare.table("embedding", config.target_vocab_size, D, config.tie_head);
  } else {
    source = declare.table("source_embedding", config.source_vocab_size, config.encoder.d_model, false);
    target = declare.table("target_embedding", config.target_vocab_size, D, config.tie_head);
  }
  encoder_ = declare.stack("encoder", config.encoder, false);
  decoder_ = declare.stack("decoder", config.decoder, true);
  encoder_.table = source;
  decoder_.table = target;
  declare.begin("", "bridge");
  if (declare.bridged()) bridge_ = declare.matrix("bridge", D, config.encoder.d_model);
  declare.begin("", "head");
  if (config.lone_pooler) declare.matrix("pooler", config.encoder.d_model, config.encoder.d_model);
  if (config.head_transform) {
    head_dense_ = declare.matrix("head_dense", D, D);
    head_norm_ = declare.norm("head_norm", D);
  }
  head_.weight = config.tie_head ? target : declare.table("head", config.target_vocab_size, D, true);
  if (config.head_bias != Config::HeadBias::none) {
    head_.bias =
        declare.vector("head.bias", config.target_vocab_size, {}, config.head_bias == Config::HeadBias::trained);
  }
}

AttentionShape EncoderDecoder::attention_shape(const Config::Stack& sizes, bool causal) const {
  const double scale = config_.scale_attention ? 1 / root(sizes.head_width) : 1;
  return {sizes.num_heads, sizes.num_heads, sizes.head_width, static_cast<float>(scale), causal};
}

Value EncoderDecoder::normed(Tape& tape, Value x, const Norm& by) const {
  return norm(tape, x, config_.norm, by.gain, by.bias, config_.norm_epsilon);
}

Value EncoderDecoder::entering(Tape& tape, Value h, const Norm& norm) const {
  return config_.pre_norm ? normed(tape, h, norm) : h;
}

Value EncoderDecoder::leaving(Tape& tape, Value h, Value x, const Matrix& last, const Norm& norm) const {
  const Value sum = linear(tape, x, last.weight, {.bias = last.bias, .dropout = config_.dropout, .residual = h});
  return config_.pre_norm ? sum : normed(tape, sum, norm);
}

Value EncoderDecoder::embed(Tape& tape, const Stack& stack, int row_set) const {
  const bool normed_here = stack.embedding_norm.gain != nullptr;
  const Value h = embedding(tape, row_set, stack.table,
                            {.positions = stack.positions,
                             .position_offset = config_.position_offset,
                             .types = stack.types,
                             .scale = config_.scale_embeddings ? root(stack.sizes.d_model) : 1,
                             .dropout = normed_here ? 0 : config_.dropout});
  if (!normed_here) return h;
  return norm(tape, h, config_.norm, stack.embedding_norm.gain, stack.embedding_norm.bias, config_.norm_epsilon,
              config_.dropout);
}

Value EncoderDecoder::add_self_attention(Tape& tape, const Stack& stack, const Layer& layer, Value h, Value bias,
                                         bool causal) const {
  const int64_t K = stack.sizes.head_width;
  Value qkv = linear(tape, entering(tape, h, layer.attention_norm), layer.qkv.weight, {.bias = layer.qkv.bias});
  if (config_.positions == Config::Positions::rotary) {
    qkv = rotary(tape, qkv, 2 * stack.sizes.num_heads * K, K, config_.rope_theta);
  }
  const AttentionShape shape = attention_shape(stack.sizes, causal);
  const Value mixed = self_attention(tape, qkv, shape, config_.attention_dropout, bias);
  return leaving(tape, h, mixed, layer.attention_out, layer.attention_norm);
}

Value EncoderDecoder::add_feed_forward(Tape& tape, const Layer& layer, Value h) const {
  const Value x = entering(tape, h, layer.feed_forward_norm);
  const Activation activation = activation_of(config_.feed_forward);
  const Value inner =
      config_.is_gated()
          ? gated(tape, linear(tape, x, layer.up.weight, {.bias = layer.up.bias}), activation)
          : linear(tape, x, layer.up.weight,
                   {.bias = layer.up.bias, .activation = activation, .dropout = config_.activation_dropout});
  return leaving(tape, h, inner, layer.down, layer.feed_forward_norm);
}

Value EncoderDecoder::relative_positions(Tape& tape, const Stack& stack, int64_t longest, bool causal) const {
  if (stack.relative == nullptr) return {};
  return relative_bias(tape, stack.relative, {config_.relative_distance, causal}, longest);
}

Value EncoderDecoder::encoded(Tape& tape) const {
  const Value bias = relative_positions(tape, encoder_, tape.rows(kSource).longest, false);
  Value h = embed(tape, encoder_, kSource);
  for (const Layer& layer : encoder_.layers) {
    h = add_self_attention(tape, encoder_, layer, h, bias, false);
    h = add_feed_forward(tape, layer, h);
    tape.end_layer();
  }
  if (encoder_.final_norm.gain != nullptr) h = normed(tape, h, encoder_.final_norm);
  return bridge_.weight == nullptr ? h : linear(tape, h, bridge_.weight, {.bias = bridge_.bias});
}

Value EncoderDecoder::decoded(Tape& tape, int row_set, Value source) const {
  const Config::Stack& sizes = decoder_.sizes;
  const AttentionShape across = attention_shape(sizes, false);
  const int64_t most_keys = source ? tape.rows(row_set).longest : sizes.max_length;
  const Value bias = relative_positions(tape, decoder_, most_keys, true);
  Value h = embed(tape, decoder_, row_set);
  for (size_t l = 0; l < decoder_.layers.size(); ++l) {
    const Layer& layer = decoder_.layers[l];
    h = add_self_attention(tape, decoder_, layer, h, bias, true);
    const Value q =
        linear(tape, entering(tape, h, layer.cross_norm), layer.cross_q.weight, {.bias = layer.cross_q.bias});
    Value mixed;
    if (source) {
      const Value kv = linear(tape, source, layer.cross_kv.weight, {.bias = layer.cross_kv.bias});
      mixed = cross_attention(tape, q, kv, across, config_.attention_dropout);
    } else {
      mixed = memory_attention(tape, q, across, static_cast<int64_t>(l), config_.encoder.max_length);
    }
    h = leaving(tape, h, mixed, layer.cross_out, layer.cross_norm);
    h = add_feed_forward(tape, layer, h);
    tape.end_layer();
  }
  return decoder_.final_norm.gain != nullptr ? normed(tape, h, decoder_.final_norm) : h;
}

Value EncoderDecoder::head_input(Tape& tape, Value h) const {
  if (config_.head_transform) {
    const LinearOptions options{.bias = head_dense_.bias, .activation = activation_of(config_.feed_forward)};
    h = normed(tape, linear(tape, h, head_dense_.weight, options), head_norm_);
  }
  return config_.scale_head ? pointwise(tape, h, Activation::none, 1 / root(config_.decoder.d_model)) : h;
}

LossValues EncoderDecoder::loss(Tape& tape, const LossOptions& options) const {
  LossOptions with_bias = options;
  with_bias.bias = head_.bias;
  return linear_cross_entropy(tape, head_input(tape, decoded(tape, kTarget, encoded(tape))), head_.weight, with_bias);
}

Value EncoderDecoder::logits(Tape& tape) const {
  return brisk::logits(tape, head_input(tape, decoded(tape, kTarget, encoded(tape))), head_.weight, head_.bias);
}

Value EncoderDecoder::encode(Tape& tape) const {
  const Value source = encoded(tape);
  std::vector<Value> parts;
  for (const Layer& layer : decoder_.layers) {
    parts.push_back(linear(tape, source, layer.cross_kv.weight, {.bias = layer.cross_kv.bias}));
  }
  const Value memory = concatenate(tape, parts);
  tape.read_back(memory);
  return memory;
}

Value EncoderDecoder::next_token_logits(Tape& tape) const {
  return last_row_logits(tape, head_input(tape, decoded(tape, 0, {})), head_.weight, head_.bias);
}

std::unique_ptr<Model> Config::make(ParameterStore& store) const {
  return std::make_unique<EncoderDecoder>(*this, store);
}

ModelWidths Config::widths() const {
  return {std::max(encoder.d_model, decoder.d_model), std::max(encoder.d_ff, decoder.d_ff)};
}

uint64_t Config::fingerprint() const {
  // Every field by name: a new one does not compile until it is decided on here. Dropout does not change the function, and
  // nothing reads a lone pooler.
  const auto& [source_V, target_V, reads, writes, pre, first, norm_kind, epsilon, activation, position_kind, offset,
               buckets, distance, theta, embeddings_scaled, attention_scaled, head_scaled, biased, shared, tied,
               of_logits, transform, begins_with, pooler, dropped, attention_dropped, activation_dropped] = *this;
  uint64_t hash =
      fingerprint_of("encoder_decoder", source_V, target_V, pre, first, norm_kind, epsilon, activation, position_kind,
                     offset, buckets, distance, theta, embeddings_scaled, attention_scaled, head_scaled, biased, shared,
                     tied, of_logits != HeadBias::none, transform, begins_with);
  for (const Stack* stack : {&reads, &writes}) {
    const auto& [D, L, heads, K, F, longest, type_rows] = *stack;
    hash = hash_mix(hash, fingerprint_of("stack", D, L, heads, K, F, longest, type_rows));
  }
  return hash;
}

}  // namespace brisk
