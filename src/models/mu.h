// MU, a language model whose token state is an 8x8 matrix: sixteen 2x2 blocks, each of which attends to itself alone before
// they all meet, and a learned, per token and per block, share of the old state that is replaced.
//
//   ParameterStore store;
//   Mu mu(MuConfig{.vocab_size = 50000}, store);        // declares the parameters
//   LossValues loss = mu.loss(tape, {});                // records one training or evaluation run
//
// A layer, x [N, 64]:
//   a = the sixteen block attentions: 2 heads of width 2 over each block's own 4 numbers, no residual
//   c = attention of 8 heads over a; e = the entropy of its weights, averaged over the heads
//   a = LN(a + c), a = LN(a + FFN(a))
//   s = base * sigmoid(MLP(affinity of the token, e)): one for each block
//   x = x + s (a - x)
//
// The state is block-major: a block is four neighbouring numbers. The model as it was first written (`reference`) keeps it
// row-major, so that the blocks of the first step and the groups of the last are not the same numbers, and it has no causal
// mask: it sees the tokens that it predicts.
//
// Parameters, [rows, columns]; row (p 16 + b) 4 + o of a block matrix is output o of part p (query, key, value) of block b:
//   embedding.weight [V, 64]   positions.weight [T, 64]
//   layers.N.blocks.qkv.weight [192, 4]   layers.N.blocks.qkv.bias [1, 192]
//   layers.N.blocks.out.weight [64, 4]    layers.N.blocks.out.bias [1, 64]
//   layers.N.cross.qkv.weight [192, 64]   layers.N.cross.qkv.bias [1, 192]
//   layers.N.cross.out.weight [64, 64]    layers.N.cross.out.bias [1, 64]
//   layers.N.cross_norm.gain, .bias [1, 64]   layers.N.feed_forward_norm.gain, .bias [1, 64]
//   layers.N.up.weight [256, 64]   .bias [1, 256]   layers.N.down.weight [64, 256]   .bias [1, 64]
//   layers.N.affinity.weight [V, 16]
//   layers.N.sensitivity.up.weight [32, 17]   .bias [1, 32]   layers.N.sensitivity.down.weight [16, 32]   .bias [1, 16]
//   layers.N.sensitivity.base [1, 16]
//   layers.N.block_interaction.weight [16, 16]: with `reference` alone, which has it and never uses it
//   final_norm.gain, .bias [1, 64]   head.weight [V, 64]   head.bias [1, V]
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "models/model.h"
#include "models/model_config.h"
#include "ops/tape/tape_ops.h"
#include "tensor/parameter.h"
#include "tensor/tape.h"

namespace brisk {

struct MuConfig {
  int64_t vocab_size = 0;    // V
  int64_t num_layers = 6;    // L
  int64_t max_length = 128;  // T: rows of the table of positions
  double norm_epsilon = 1e-5;
  double dropout = 0;
  bool reference = false;

  std::unique_ptr<Model> make(ParameterStore& store) const;
  ModelWidths widths() const;
  uint64_t fingerprint() const;
  bool operator==(const MuConfig&) const = default;
};

class Mu final : public CausalModel {
 public:
  static constexpr int64_t kWidth = 64, kBlocks = 16, kHeads = 8, kInner = 256;

  Mu(const MuConfig& config, ParameterStore& store);

  const MuConfig& config() const { return config_; }
  // The last norm's output, [N, 64].
  Value hidden(Tape& tape) const;
  LossValues loss(Tape& tape, const LossOptions& options) const override;
  Value next_token_logits(Tape& tape) const override;
  int64_t vocab_size() const override { return config_.vocab_size; }
  int64_t max_length() const override { return config_.max_length; }
  // Two attentions a layer: of the blocks, and of all.
  CacheShape cache_shape() const override { return {2 * config_.num_layers, kWidth}; }
  bool sees_later_tokens() const override { return config_.reference; }
  Value logits(Tape& tape) const;  // [N, V], for tests

 private:
  struct Matrix {
    Parameter *weight, *bias;
  };
  struct Layer {
    Matrix block_qkv, block_out, cross_qkv, cross_out, cross_norm, feed_forward_norm, up, down;
    Parameter* affinity;
    Matrix sensitivity_up, sensitivity_down;
    Parameter* base;
  };
  Value layer(Tape& tape, const Layer& layer, Value x) const;

  MuConfig config_;
  Parameter *table_, *positions_;
  std::vector<Layer> layers_;
  Matrix final_norm_, head_;
};

}  // namespace brisk
