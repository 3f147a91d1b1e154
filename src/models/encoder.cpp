#include "models/encoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"

namespace brisk {

namespace {

constexpr int kTokens = 0, kPicked = 1;  // row sets

Activation activation_of(EncoderConfig::FeedForward kind) {
  switch (kind) {
    case EncoderConfig::FeedForward::gelu_erf: return Activation::gelu_erf;
    case EncoderConfig::FeedForward::gelu_tanh: return Activation::gelu_tanh;
    case EncoderConfig::FeedForward::relu: return Activation::relu;
  }
  return Activation::none;
}

}  // namespace

Encoder::Encoder(const EncoderConfig& config, ParameterStore& store) : config_(config) {
  BRISK_CHECK(config.num_layers > 0 && config.frozen_layers <= config.num_layers, "{} layers, {} of them frozen",
              config.num_layers, config.frozen_layers);
  BRISK_CHECK(config.cached_layers <= config.cacheable_layers(), "{} layers of {} cannot be cached",
              config.cached_layers, config.num_layers);
  const int64_t D = config.d_model, F = config.d_ff;
  const Initial normal{Initial::Kind::normal, 0.02};
  bool trained = true;  // what is declared next, and the component that it is counted in
  std::string component;

  const auto table = [&](const std::string& name, int64_t rows, bool multiplies) {
    return store.add({name + ".weight", rows, D, true, multiplies, normal, {}, false, trained, false, component});
  };
  const auto bias = [&](const std::string& name, int64_t cols) {
    return store.add(
        {name + ".bias", 1, cols, false, false, {Initial::Kind::zeros}, {}, false, trained, false, component});
  };
  const auto matrix = [&](const std::string& name, int64_t rows, int64_t cols, bool hidden = true,
                          std::vector<int64_t> parts = {}) {
    Parameter* weight = store.add(
        {name + ".weight", rows, cols, true, true, normal, std::move(parts), hidden, trained, false, component});
    return Matrix{weight, bias(name, rows)};
  };
  const auto norm = [&](const std::string& name) {
    Parameter* gain =
        store.add({name + ".gain", 1, D, false, false, {Initial::Kind::ones}, {}, false, trained, false, component});
    return Norm{gain, bias(name, D)};
  };

  trained = config.trains_embeddings();
  table_ = table("embedding", config.vocab_size, config.head == EncoderConfig::Head::mlm);
  positions_ = table("positions", config.position_offset + config.max_length, false);
  component = "token types";
  if (config.types > 0) types_ = table("types", config.types, false);
  component = "norms";
  embedding_norm_ = norm("embedding_norm");
  for (int64_t l = 0; l < config.num_layers; ++l) {
    trained = config.trains_layer(l);
    const std::string prefix = fmt::format("layers.{}.", l);
    Layer layer{};
    component = "attention projections";
    layer.qkv = matrix(prefix + "qkv", 3 * D, D, true, {D, D, D});
    layer.attention_out = matrix(prefix + "attention_out", D, D);
    component = "norms";
    layer.attention_norm = norm(prefix + "attention_norm");
    component = "feed-forward";
    layer.up = matrix(prefix + "up", F, D);
    layer.down = matrix(prefix + "down", D, F);
    component = "norms";
    layer.feed_forward_norm = norm(prefix + "feed_forward_norm");
    layers_.push_back(layer);
  }
  trained = true;
  component = config.is_classifier() ? "head" : "head (with the embedding)";
  if (config.is_classifier()) {
    head_dense_ = matrix("pooler", D, D);
    head_product_ = matrix("classifier", config.num_labels, D, false);
  } else if (config.head == EncoderConfig::Head::none) {
    if (config.lone_pooler) head_dense_ = matrix("pooler", D, D);
  } else {
    head_dense_ = matrix("mlm_dense", D, D);
    head_norm_ = norm("mlm_norm");
    head_product_ = {table_, bias("mlm", config.vocab_size)};
  }
}

int64_t EncoderConfig::cacheable_layers() const {
  const bool drops = frozen_dropout && (dropout > 0 || attention_dropout > 0);
  if (drops || trains_embeddings()) return 0;
  return std::min(frozen_layers, head == Head::roberta ? num_layers - 1 : num_layers);
}

Encoder::Drops Encoder::drops_of(int64_t layer) const {
  const bool on = config_.trains_layer(layer) || config_.frozen_dropout;
  const bool before_head = layer + 1 == config_.num_layers && config_.head == EncoderConfig::Head::roberta;
  return {on ? config_.attention_dropout : 0, on ? config_.dropout : 0, before_head ? config_.classifier_dropout : 0};
}

Value Encoder::finish_layer(Tape& tape, const Layer& layer, Value mixed, Value h, const Drops& drops) const {
  const double epsilon = config_.norm_epsilon;
  Value sum = linear(tape, mixed, layer.attention_out.weight,
                     {.bias = layer.attention_out.bias, .dropout = drops.sums, .residual = h});
  const Value x = norm(tape, sum, NormKind::layer, layer.attention_norm.gain, layer.attention_norm.bias, epsilon);
  const Value inner =
      linear(tape, x, layer.up.weight, {.bias = layer.up.bias, .activation = activation_of(config_.feed_forward)});
  sum = linear(tape, inner, layer.down.weight, {.bias = layer.down.bias, .dropout = drops.sums, .residual = x});
  return norm(tape, sum, NormKind::layer, layer.feed_forward_norm.gain, layer.feed_forward_norm.bias, epsilon,
              drops.output);
}

Value Encoder::embed(Tape& tape) const {
  const Value h = embedding(tape, kTokens, table_,
                            {.positions = positions_, .position_offset = config_.position_offset, .types = types_});
  const bool drops = config_.trains_embeddings() || config_.frozen_dropout;
  return norm(tape, h, NormKind::layer, embedding_norm_.gain, embedding_norm_.bias, config_.norm_epsilon,
              drops ? config_.dropout : 0);
}

Value Encoder::run_layers(Tape& tape, Value h, int64_t begin, int64_t end) const {
  const int64_t D = config_.d_model, K = config_.head_width();
  const AttentionShape shape{config_.num_heads, config_.num_heads, K, 1.0f / std::sqrt(static_cast<float>(K)), false};
  for (int64_t l = begin; l < end; ++l) {
    const Layer& layer = layers_[static_cast<size_t>(l)];
    const bool last = l + 1 == config_.num_layers;
    const Drops drops = drops_of(l);
    if (last && config_.prune_last_layer) {
      const Value picked = pick_rows(tape, h, kPicked);
      const Value q = linear(tape, picked, layer.qkv.weight, {.bias = layer.qkv.bias, .rows = D});
      // Recorded after the pick, so that its gradient is the first of h's and fills all rows: the pick's is added.
      const Value kv = linear(tape, h, layer.qkv.weight, {.bias = layer.qkv.bias, .first_row = D, .rows = 2 * D});
      const Value mixed = cross_attention(tape, q, kv, shape, drops.attention);
      h = finish_layer(tape, layer, mixed, picked, drops);
    } else {
      const Value qkv = linear(tape, h, layer.qkv.weight, {.bias = layer.qkv.bias});
      const Value mixed = self_attention(tape, qkv, shape, drops.attention);
      h = finish_layer(tape, layer, mixed, h, drops);
      if (last) h = pick_rows(tape, h, kPicked);
    }
    tape.end_layer();
  }
  return h;
}

Value Encoder::picked_hidden(Tape& tape) const {
  const int64_t cached = config_.cached_layers, L = config_.num_layers;
  const Value h = cached > 0 ? input_rows(tape, cached == L ? kPicked : kTokens, config_.d_model) : embed(tape);
  return run_layers(tape, h, cached, L);
}

Value Encoder::rows_after(Tape& tape, int64_t layers) const {
  const Value h = run_layers(tape, embed(tape), 0, layers);
  tape.read_back(h);
  return h;
}

Value Encoder::head_input(Tape& tape) const {
  BRISK_CHECK(config_.head != EncoderConfig::Head::none, "an encoder without a head has neither loss nor logits");
  const Value h = picked_hidden(tape);
  LinearOptions options{.bias = head_dense_.bias};
  if (config_.is_classifier()) {
    options.activation = config_.head == EncoderConfig::Head::relu ? Activation::relu : Activation::tanh;
    options.dropout = config_.classifier_dropout;
    return linear(tape, h, head_dense_.weight, options);
  }
  options.activation = activation_of(config_.feed_forward);
  return norm(tape, linear(tape, h, head_dense_.weight, options), NormKind::layer, head_norm_.gain, head_norm_.bias,
              config_.norm_epsilon);
}

LossValues Encoder::loss(Tape& tape, const LossOptions& options) const {
  return linear_cross_entropy(tape, head_input(tape), head_product_.weight,
                              {.label_smoothing = options.label_smoothing,
                               .bias = head_product_.bias,
                               .soft_weight = options.soft_weight,
                               .temperature = options.temperature});
}

Value Encoder::class_logits(Tape& tape) const {
  BRISK_CHECK(config_.is_classifier(), "an encoder of masked words has no classes");
  return head_logits(tape);
}

Value Encoder::head_logits(Tape& tape) const {
  return logits(tape, head_input(tape), head_product_.weight, head_product_.bias);
}

std::unique_ptr<Model> EncoderConfig::make(ParameterStore& store) const {
  return std::make_unique<Encoder>(*this, store);
}

uint64_t EncoderConfig::fingerprint() const {
  // Every field by name: a new one does not compile until it is decided on here. Dropout and what is frozen do not change
  // the function, prune_last_layer computes less of the same, and nothing reads a lone pooler.
  const auto& [V, D, L, heads, F, longest, offset, type_rows, epsilon, activation, dropped, attention_dropped,
               classifier_dropped, head_kind, pooler, labels, first_row, embeddings_frozen, layers_frozen,
               frozen_dropped, layers_cached] = *this;
  return fingerprint_of("encoder", V, D, L, heads, F, longest, offset, type_rows, epsilon, activation, head_kind,
                        is_classifier() ? labels : 0, layers_cached);
}

}  // namespace brisk
