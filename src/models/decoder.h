// The decoder language model: GPT-2's shape (learned positions, layer norm, GELU) and Llama's (rotary positions, RMS
// norm, SwiGLU, grouped key/value heads) by options.
//
//   ParameterStore store;
//   Decoder decoder(config, store);                  // declares the parameters
//   LossValues loss = decoder.loss(tape, {});        // records one training or evaluation run
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "models/model.h"
#include "models/model_config.h"
#include "ops/tape/tape_ops.h"
#include "tensor/parameter.h"
#include "tensor/tape.h"

namespace brisk {

struct DecoderConfig {
  int64_t vocab_size = 0;  // V
  int64_t d_model = 256;   // D
  int64_t num_layers = 2;  // L
  int64_t num_heads = 4;   // H
  int64_t num_kv_heads = 4;
  int64_t d_ff = 1024;       // F
  int64_t max_length = 128;  // T: rows of the table of learned positions
  NormKind norm = NormKind::layer;
  double norm_epsilon = 1e-5;
  enum class FeedForward : uint8_t { gelu_tanh, gelu_erf, relu, swiglu } feed_forward = FeedForward::gelu_tanh;
  enum class Positions : uint8_t { learned, rotary, none } positions = Positions::learned;
  double rope_theta = 10000;
  bool bias = true;  // in linear layers and layer norms
  bool tie_embeddings = true;
  double dropout = 0;

  // Fine-tuning. What is frozen has no gradient, and nothing below the lowest trained layer has a backward.
  int64_t trained_layers = 0;  // > 0: the last so many layers, the final norm and an untied head; 0: everything
  int64_t lora_rank = 0;       // > 0: everything is frozen, and the matrices named below get low-rank adapters
  double lora_scale = 1;       // y = x W^T + scale (x A^T) B^T, A [rank, in], B [out, rank]
  std::vector<std::string> lora_matrices = {"qkv", "attention_out", "up", "down"};

  int64_t head_width() const { return d_model / num_heads; }
  bool adapts(std::string_view matrix) const;  // has it an adapter?
  bool trains_layer(int64_t layer) const;      // are its weights trained?
  bool runs_backward_in(int64_t layer) const;  // does a gradient pass through it?

  std::unique_ptr<Model> make(ParameterStore& store) const;
  ModelWidths widths() const { return {d_model, d_ff}; }
  uint64_t fingerprint() const;
  bool operator==(const DecoderConfig&) const = default;
};

class Decoder final : public CausalModel {
 public:
  Decoder(const DecoderConfig& config, ParameterStore& store);

  const DecoderConfig& config() const { return config_; }
  // The last norm's output, [N, D].
  Value hidden(Tape& tape) const;
  LossValues loss(Tape& tape, const LossOptions& options) const override;
  Value next_token_logits(Tape& tape) const override;
  int64_t vocab_size() const override { return config_.vocab_size; }
  int64_t max_length() const override { return config_.max_length; }
  CacheShape cache_shape() const override { return {config_.num_layers, config_.num_kv_heads * config_.head_width()}; }
  Value logits(Tape& tape) const;  // [N, V], for tests

 private:
  struct Matrix {
    Parameter *weight, *bias;          // bias may be none
    Parameter *adapter_a, *adapter_b;  // of lora; none without
  };
  struct Layer {
    Parameter *attention_norm, *attention_norm_bias, *feed_forward_norm, *feed_forward_norm_bias;
    Matrix qkv, attention_out, up, down;
  };
  Value product(Tape& tape, Value x, const Matrix& matrix, LinearOptions options) const;
  Value block(Tape& tape, const Layer& layer, Value h) const;

  DecoderConfig config_;
  Parameter* table_ = nullptr;
  Parameter* positions_ = nullptr;
  std::vector<Layer> layers_;
  Parameter* final_norm_ = nullptr;
  Parameter* final_norm_bias_ = nullptr;
  Parameter* head_ = nullptr;  // the table when tied
};

}  // namespace brisk
