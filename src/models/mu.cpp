#include "models/mu.h"

#include <fmt/format.h>

#include <cmath>
#include <string>
#include <utility>

namespace brisk {

namespace {

constexpr int64_t kBlockWidth = Mu::kWidth / Mu::kBlocks;  // columns of a block
constexpr int64_t kBlockHeads = 2;                         // of each block
constexpr int64_t kSensitivityInputs = Mu::kBlocks + 1;    // affinities and the entropy
constexpr int64_t kSensitivityInner = 32;
constexpr int64_t kMatrixWidth = 8, kTileWidth = 2;  // the state as a matrix, and a block of it

// Xavier's: uniform, wide enough that a layer keeps the size of what passes through it.
Initial xavier(int64_t inputs, int64_t outputs) {
  return {Initial::Kind::uniform, std::sqrt(6.0 / static_cast<double>(inputs + outputs))};
}

}  // namespace

Mu::Mu(const MuConfig& config, ParameterStore& store) : config_(config) {
  const int64_t D = kWidth, V = config.vocab_size;
  const Initial small{Initial::Kind::normal, 0.02};
  std::string prefix, component;  // of what is declared next

  const auto table = [&](const std::string& name, int64_t rows, int64_t cols, Initial initial) {
    return store.add(
        {.name = prefix + name + ".weight", .rows = rows, .cols = cols, .decays = true, .initial = initial});
  };
  const auto vector = [&](const std::string& name, int64_t cols, Initial initial = {}) {
    return store.add({.name = prefix + name, .cols = cols, .initial = initial, .component = component});
  };
  const auto norm_of = [&](const std::string& name) -> Matrix {
    component = "norms";
    Parameter* gain = vector(name + ".gain", D, {Initial::Kind::ones});
    return {gain, vector(name + ".bias", D)};
  };
  const auto matrix = [&](const std::string& name, int64_t rows, int64_t cols,
                          std::vector<int64_t> parts = {}) -> Matrix {
    Parameter* weight = store.add({.name = prefix + name + ".weight",
                                   .rows = rows,
                                   .cols = cols,
                                   .decays = true,
                                   .multiplies = true,
                                   .initial = xavier(cols, parts.empty() ? rows : 3 * parts[0]),
                                   .parts = std::move(parts),
                                   .hidden = true,
                                   .component = component});
    return {weight, vector(name + ".bias", rows)};
  };
  // All blocks' matrices of `parts` parts, stacked; each was drawn as one of [parts 4, 4].
  const auto blocks = [&](const std::string& name, int64_t parts) -> Matrix {
    Parameter* weight = store.add({.name = prefix + name + ".weight",
                                   .rows = parts * D,
                                   .cols = kBlockWidth,
                                   .decays = true,
                                   .initial = xavier(kBlockWidth, parts * kBlockWidth),
                                   .component = component});
    return {weight, vector(name + ".bias", parts * D)};
  };

  table_ = table("embedding", V, D, small);
  positions_ = table("positions", config.max_length, D, small);
  for (int64_t l = 0; l < config.num_layers; ++l) {
    prefix = fmt::format("layers.{}.", l);
    Layer layer{};
    component = "block attention projections";
    layer.block_qkv = blocks("blocks.qkv", 3);
    layer.block_out = blocks("blocks.out", 1);
    component = "cross attention projections";
    layer.cross_qkv = matrix("cross.qkv", 3 * D, D, {D, D, D});
    layer.cross_out = matrix("cross.out", D, D);
    layer.cross_norm = norm_of("cross_norm");
    layer.feed_forward_norm = norm_of("feed_forward_norm");
    component = "feed-forward";
    layer.up = matrix("up", kInner, D);
    layer.down = matrix("down", D, kInner);
    layer.affinity = table("affinity", V, kBlocks, {Initial::Kind::normal, 0.1});
    component = "sensitivity";
    layer.sensitivity_up = matrix("sensitivity.up", kSensitivityInner, kSensitivityInputs);
    layer.sensitivity_down = matrix("sensitivity.down", kBlocks, kSensitivityInner);
    layer.base = vector("sensitivity.base", kBlocks, {Initial::Kind::normal, 0.1, 0.5});
    if (config.reference) {
      store.add({.name = prefix + "block_interaction.weight", .rows = kBlocks, .cols = kBlocks, .trained = false});
    }
    layers_.push_back(layer);
  }
  prefix.clear();
  final_norm_ = norm_of("final_norm");
  component = "head";
  head_.weight = store.add({.name = "head.weight",
                            .rows = V,
                            .cols = D,
                            .decays = true,
                            .multiplies = true,
                            .initial = xavier(D, V),
                            .component = component});
  head_.bias = vector("head.bias", V);
}

Value Mu::layer(Tape& tape, const Layer& layer, Value x) const {
  const bool causal = !config_.reference;
  const double dropout = config_.dropout;
  const auto shape = [causal](int64_t heads) {
    const int64_t width = kWidth / heads;
    return AttentionShape{heads, heads, width, 1.0f / std::sqrt(static_cast<float>(width)), causal};
  };
  const auto normed = [&](Value sum, const Matrix& by) {
    return norm(tape, sum, NormKind::layer, by.weight, by.bias, config_.norm_epsilon);
  };

  GroupedLinearOptions of_blocks{.groups = kBlocks, .parts = 3};
  if (config_.reference) {
    of_blocks.matrix_cols = kMatrixWidth;
    of_blocks.tile_cols = kTileWidth;
  }
  const Value qkv = grouped_linear(tape, x, layer.block_qkv.weight, layer.block_qkv.bias, of_blocks);
  const Value mixed = self_attention(tape, qkv, shape(kBlockHeads * kBlocks), dropout);
  Value a = grouped_linear(tape, mixed, layer.block_out.weight, layer.block_out.bias, {.groups = kBlocks});

  const Value cross_qkv = linear(tape, a, layer.cross_qkv.weight, {.bias = layer.cross_qkv.bias});
  const auto [cross, entropy] = self_attention_with_entropy(tape, cross_qkv, shape(kHeads), dropout);
  a = normed(linear(tape, cross, layer.cross_out.weight, {.bias = layer.cross_out.bias, .residual = a}),
             layer.cross_norm);
  const Value inner =
      linear(tape, a, layer.up.weight, {.bias = layer.up.bias, .activation = Activation::gelu_erf, .dropout = dropout});
  a = normed(linear(tape, inner, layer.down.weight, {.bias = layer.down.bias, .residual = a}), layer.feed_forward_norm);

  const Value seen = concatenate(tape, {embedding(tape, 0, layer.affinity), entropy});
  const Value bent =
      linear(tape, seen, layer.sensitivity_up.weight,
             {.bias = layer.sensitivity_up.bias, .activation = Activation::gelu_erf, .dropout = dropout});
  const Value gate = linear(tape, bent, layer.sensitivity_down.weight,
                            {.bias = layer.sensitivity_down.bias, .activation = Activation::sigmoid});
  return interpolate(tape, x, a, multiply(tape, gate, layer.base));
}

Value Mu::hidden(Tape& tape) const {
  Value x = embedding(tape, 0, table_, {.positions = positions_});
  for (const Layer& each : layers_) {
    x = layer(tape, each, x);
    tape.end_layer();
  }
  return norm(tape, x, NormKind::layer, final_norm_.weight, final_norm_.bias, config_.norm_epsilon);
}

LossValues Mu::loss(Tape& tape, const LossOptions& options) const {
  LossOptions with_bias = options;
  with_bias.bias = head_.bias;
  return linear_cross_entropy(tape, hidden(tape), head_.weight, with_bias);
}

Value Mu::next_token_logits(Tape& tape) const { return last_row_logits(tape, hidden(tape), head_.weight, head_.bias); }
Value Mu::logits(Tape& tape) const { return brisk::logits(tape, hidden(tape), head_.weight, head_.bias); }

std::unique_ptr<Model> MuConfig::make(ParameterStore& store) const { return std::make_unique<Mu>(*this, store); }

ModelWidths MuConfig::widths() const { return {Mu::kWidth, Mu::kInner}; }

uint64_t MuConfig::fingerprint() const {
  // Every field by name: a new one does not compile until it is decided on here. Dropout does not change the function.
  const auto& [V, L, longest, epsilon, dropped, as_first_written] = *this;
  return fingerprint_of("mu", V, L, longest, epsilon, as_first_written);
}

}  // namespace brisk
