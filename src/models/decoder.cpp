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
  bool trained = true;  // what is declared next

  const auto table = [&](const std::string& name) {
    return store.add({name + ".weight", config.vocab_size, D, true, true, normal, {}, false, trained});
  };
  const auto weight = [&](const std::string& name, int64_t rows, int64_t cols, Initial initial,
                          std::vector<int64_t> parts = {}) {
    return store.add({name + ".weight", rows, cols, true, true, initial, std::move(parts), true, trained});
  };
  const auto bias = [&](const std::string& name, int64_t cols) -> Parameter* {
    if (!config.bias) return nullptr;
    return store.add({name + ".bias", 1, cols, false, false, {Initial::Kind::zeros}, {}, false, trained});
  };
  const auto gain = [&](const std::string& name) {
    return store.add({name + ".gain", 1, D, false, false, {Initial::Kind::ones}, {}, false, trained});
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
      result.adapter_a =
          store.add({adapter + "a.weight", config.lora_rank, cols, true, true, spread, {}, false, true, true});
      result.adapter_b = store.add(
          {adapter + "b.weight", rows, config.lora_rank, true, true, {Initial::Kind::zeros}, {}, false, true, true});
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
    layer.qkv = matrix(prefix, "qkv", q_rows + 2 * kv_rows, D, normal, {q_rows, kv_rows, kv_rows});
    layer.attention_out = matrix(prefix, "attention_out", D, q_rows, shrunk);
    layer.feed_forward_norm = gain(prefix + "feed_forward_norm");
    layer.feed_forward_norm_bias = norm_bias(prefix + "feed_forward_norm");
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

std::vector<ComponentCost> DecoderConfig::costs(double mean_length, double /*picked*/) const {
  const int64_t D = d_model, F = d_ff, V = vocab_size, L = num_layers, K = head_width();
  const int64_t q_rows = num_heads * K, kv_rows = num_kv_heads * K;
  const bool gated = feed_forward == FeedForward::swiglu;
  const int64_t biases = bias ? 1 : 0;
  // 2 a weight forward, 2 for the gradient of what goes in, 2 for its own where it is trained; on average over layers.
  double each = 0, attention_passes = 0;
  for (int64_t l = 0; l < L; ++l) {
    each += 2 + (runs_backward_in(l) ? 2 : 0) + (trains_layer(l) ? 2 : 0);
    attention_passes += runs_backward_in(l) ? 3 : 1;
  }
  const auto products = [&](int64_t weights) { return each / static_cast<double>(L) * static_cast<double>(weights); };

  std::vector<ComponentCost> components;
  components.push_back({"embedding", V * D, 0});
  if (positions == Positions::learned) components.push_back({"positions", max_length * D, 0});
  const int64_t attention = L * (q_rows + 2 * kv_rows + q_rows) * D;
  components.push_back(
      {"attention projections", attention + L * biases * (q_rows + 2 * kv_rows + D), products(attention)});
  // Two products of T/2 x K per head forward (causal), four backward.
  components.push_back({"attention", 0, 2.0 * attention_passes * static_cast<double>(q_rows) * mean_length});
  const int64_t inner = gated ? 2 * F : F;
  const int64_t feed_forward_weights = L * (inner + F) * D;
  components.push_back(
      {"feed-forward", feed_forward_weights + L * biases * (inner + D), products(feed_forward_weights)});
  const int64_t norm_rows = norm == NormKind::layer && bias ? 2 : 1;
  components.push_back({"norms", (2 * L + 1) * norm_rows * D, 0});
  int64_t adapters = 0;
  const auto adapter = [&](const char* matrix, int64_t rows, int64_t cols) {
    if (adapts(matrix)) adapters += L * lora_rank * (rows + cols);
  };
  adapter("qkv", q_rows + 2 * kv_rows, D);
  adapter("attention_out", D, q_rows);
  adapter("up", inner, D);
  adapter("down", D, F);
  if (adapters > 0) components.push_back({"adapters", adapters, 6.0 * static_cast<double>(adapters)});
  const bool head_trained = lora_rank == 0 && (trained_layers == 0 || !tie_embeddings);
  components.push_back({tie_embeddings ? "head (the embedding)" : "head", tie_embeddings ? 0 : V * D,
                        (head_trained ? 6.0 : 4.0) * static_cast<double>(V * D)});
  return components;
}

}  // namespace brisk
