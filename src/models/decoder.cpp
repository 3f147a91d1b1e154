#include "models/decoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace brisk {

namespace {

Activation activation_of(DecoderConfig::FeedForward kind) {
  switch (kind) {
    case DecoderConfig::FeedForward::gelu_tanh: return Activation::gelu_tanh;
    case DecoderConfig::FeedForward::gelu_erf: return Activation::gelu_erf;
    case DecoderConfig::FeedForward::relu: return Activation::relu;
    case DecoderConfig::FeedForward::swiglu: return Activation::silu;
  }
  return Activation::none;
}

}  // namespace

bool DecoderConfig::adapts(std::string_view matrix) const {
  return lora_rank > 0 && std::find(lora_matrices.begin(), lora_matrices.end(), matrix) != lora_matrices.end();
}

bool DecoderConfig::trains_layer(int64_t layer) const {
  if (lora_rank > 0) return false;
  return trained_layers == 0 || layer >= num_layers - trained_layers;
}

bool DecoderConfig::runs_backward_in(int64_t layer) const { return lora_rank > 0 || trains_layer(layer); }

Decoder::Decoder(const DecoderConfig& config, ParameterStore& store) : config_(config) {
  const int64_t D = config.d_model, F = config.d_ff, K = config.head_width();
  const int64_t q_rows = config.num_heads * K, kv_rows = config.num_kv_heads * K;
  // GPT-2's initialisation: 0.02, and the two products that write to the residual stream shrunk by the number of
  // writes.
  const Initial normal{Initial::Kind::normal, 0.02};
  const Initial shrunk{Initial::Kind::normal, 0.02 / std::sqrt(2.0 * static_cast<double>(config.num_layers))};
  const bool gated = config.feed_forward == DecoderConfig::FeedForward::swiglu;
  bool trained = true;  // what is declared next, and the component that it is counted in
  std::string component;

  const auto table = [&](const std::string& name) {
    return store.add({name + ".weight", config.vocab_size, D, true, true, normal, {}, false, trained, false, name});
  };
  const auto weight = [&](const std::string& name, int64_t rows, int64_t cols, Initial initial,
                          std::vector<int64_t> parts = {}) {
    return store.add(
        {name + ".weight", rows, cols, true, true, initial, std::move(parts), true, trained, false, component});
  };
  const auto bias = [&](const std::string& name, int64_t cols) -> Parameter* {
    if (!config.bias) return nullptr;
    return store.add(
        {name + ".bias", 1, cols, false, false, {Initial::Kind::zeros}, {}, false, trained, false, component});
  };
  const auto gain = [&](const std::string& name) {
    component = "norms";
    return store.add({name + ".gain", 1, D, false, false, {Initial::Kind::ones}, {}, false, trained, false, component});
  };
  const auto norm_bias = [&](const std::string& name) -> Parameter* {
    return config.norm == NormKind::layer ? bias(name, D) : nullptr;
  };
  const auto matrix = [&](const std::string& prefix, const std::string& name, int64_t rows, int64_t cols,
                          Initial initial, std::vector<int64_t> parts = {}) {
    Matrix result{};
    result.weight = weight(prefix + name, rows, cols, initial, std::move(parts));
    result.bias = bias(prefix + name, rows);
    if (config.adapts(name)) {
      // A random and B zero, so that training starts from the model as it was.
      const Initial spread{Initial::Kind::normal, 1 / std::sqrt(3.0 * static_cast<double>(cols))};
      const std::string adapter = prefix + name + ".lora_";
      const auto factor = [&](const char* which, int64_t factor_rows, int64_t factor_cols, Initial start) {
        return store.add({adapter + which + ".weight",
                          factor_rows,
                          factor_cols,
                          true,
                          true,
                          start,
                          {},
                          false,
                          true,
                          true,
                          "adapters"});
      };
      result.adapter_a = factor("a", config.lora_rank, cols, spread);
      result.adapter_b = factor("b", rows, config.lora_rank, {Initial::Kind::zeros});
    }
    return result;
  };

  // A tied table is frozen with the layers: its gradient would need the backward of them all.
  trained = config.lora_rank == 0 && config.trained_layers == 0;
  table_ = table("embedding");
  if (config.positions == DecoderConfig::Positions::learned) {
    positions_ = store.add({"positions.weight", config.max_length, D, true, false, normal, {}, false, trained});
  }
  for (int64_t l = 0; l < config.num_layers; ++l) {
    trained = config.trains_layer(l);
    const std::string prefix = fmt::format("layers.{}.", l);
    Layer layer{};
    layer.attention_norm = gain(prefix + "attention_norm");
    layer.attention_norm_bias = norm_bias(prefix + "attention_norm");
    component = "attention projections";
    layer.qkv = matrix(prefix, "qkv", q_rows + 2 * kv_rows, D, normal, {q_rows, kv_rows, kv_rows});
    layer.attention_out = matrix(prefix, "attention_out", D, q_rows, shrunk);
    layer.feed_forward_norm = gain(prefix + "feed_forward_norm");
    layer.feed_forward_norm_bias = norm_bias(prefix + "feed_forward_norm");
    component = "feed-forward";
    layer.up =
        matrix(prefix, "up", gated ? 2 * F : F, D, normal, gated ? std::vector<int64_t>{F, F} : std::vector<int64_t>{});
    layer.down = matrix(prefix, "down", D, F, shrunk);
    layers_.push_back(layer);
  }
  trained = config.lora_rank == 0;
  final_norm_ = gain("final_norm");
  final_norm_bias_ = norm_bias("final_norm");
  head_ = config.tie_embeddings ? table_ : table("head");
}

// linear, with the matrix's adapter where it has one: activation(x W^T + b + scale (x A^T) B^T), and so on.
Value Decoder::product(Tape& tape, Value x, const Matrix& matrix, LinearOptions options) const {
  options.bias = matrix.bias;
  if (matrix.adapter_a == nullptr) return linear(tape, x, matrix.weight, options);
  const Activation activation = std::exchange(options.activation, Activation::none);
  const Value narrow = pointwise(tape, linear(tape, x, matrix.adapter_a), Activation::none, config_.lora_scale);
  const Value y = linear(tape, x, matrix.weight, options);
  const Value sum = linear(tape, narrow, matrix.adapter_b, {.dropout = options.dropout, .residual = y});
  return activation == Activation::none ? sum : pointwise(tape, sum, activation, 1);
}

Value Decoder::block(Tape& tape, const Layer& layer, Value h) const {
  const int64_t K = config_.head_width();
  const AttentionShape shape{config_.num_heads, config_.num_kv_heads, K, 1.0f / std::sqrt(static_cast<float>(K)), true};

  Value x = norm(tape, h, config_.norm, layer.attention_norm, layer.attention_norm_bias, config_.norm_epsilon);
  Value qkv = product(tape, x, layer.qkv, {});
  if (config_.positions == DecoderConfig::Positions::rotary) {
    qkv = rotary(tape, qkv, (config_.num_heads + config_.num_kv_heads) * K, K, config_.rope_theta);
  }
  const Value mixed = self_attention(tape, qkv, shape, config_.dropout);
  h = product(tape, mixed, layer.attention_out, {.dropout = config_.dropout, .residual = h});

  x = norm(tape, h, config_.norm, layer.feed_forward_norm, layer.feed_forward_norm_bias, config_.norm_epsilon);
  const Activation activation = activation_of(config_.feed_forward);
  Value inner;
  if (config_.feed_forward == DecoderConfig::FeedForward::swiglu) {
    inner = gated(tape, product(tape, x, layer.up, {}), activation);
  } else {
    inner = product(tape, x, layer.up, {.activation = activation});
  }
  return product(tape, inner, layer.down, {.dropout = config_.dropout, .residual = h});
}

Value Decoder::hidden(Tape& tape) const {
  Value h = embedding(tape, 0, table_, {.positions = positions_, .dropout = config_.dropout});
  for (const Layer& layer : layers_) {
    h = block(tape, layer, h);
    tape.end_layer();
  }
  return norm(tape, h, config_.norm, final_norm_, final_norm_bias_, config_.norm_epsilon);
}

LossValues Decoder::loss(Tape& tape, const LossOptions& options) const {
  return linear_cross_entropy(tape, hidden(tape), head_, options);
}

Value Decoder::next_token_logits(Tape& tape) const { return last_row_logits(tape, hidden(tape), head_); }
Value Decoder::logits(Tape& tape) const { return brisk::logits(tape, hidden(tape), head_); }

std::unique_ptr<Model> DecoderConfig::make(ParameterStore& store) const {
  return std::make_unique<Decoder>(*this, store);
}

uint64_t DecoderConfig::fingerprint() const {
  // Every field by name: a new one does not compile until it is decided on here. Dropout and what is trained do not
  // change the function.
  const auto& [V, D, L, heads, kv_heads, F, longest, norm_kind, epsilon, activation, position_kind, theta, biased, tied,
               dropped, layers_trained, rank, scale, adapted] = *this;
  uint64_t hash = fingerprint_of("decoder", V, D, L, heads, kv_heads, F, longest, norm_kind, epsilon, activation,
                                 position_kind, theta, biased, tied, rank);
  if (rank == 0) return hash;  // without adapters, what else is said of them means nothing
  hash = hash_mix(hash, fingerprint_of("adapters", scale));
  for (const std::string& matrix : adapted) hash = hash_bytes(matrix, hash);
  return hash;
}

}  // namespace brisk
