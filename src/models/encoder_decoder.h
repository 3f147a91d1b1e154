// The encoder-decoder, which reads one text and writes another: the original transformer, Marian, BART, T5, and a BERT that
// reads for a BERT that writes, by options.
//
//   ParameterStore store;
//   EncoderDecoder model(config, store);                         // declares the parameters
//   Tape tape({.rows = {{4096, 64, 128}, {4096, 64, 128}}});     // row set 0: sources; row set 1: targets
//   LossValues loss = model.loss(tape, {});                      // records one training or evaluation run
//
// Parameters, [rows, columns]; D, H, K and F are the stack's own, V the text's own:
//   embedding.weight [V, D], of both texts; or source_embedding.weight and target_embedding.weight
//   encoder.positions.weight, decoder.positions.weight [offset + T, D]: learned, or sinusoids, which are not trained
//   encoder.types.weight, decoder.types.weight [types, D], of which every row gets the first
//   encoder.relative.weight, decoder.relative.weight [buckets, H], of all layers
//   encoder.embedding_norm.gain, .bias [1, D]   (likewise of the decoder), and .final_norm.gain, .bias
//   encoder.layers.N.qkv.weight [3 H K, D]   .attention_out.weight [D, H K]   .attention_norm.gain, .bias [1, D]
//   encoder.layers.N.up.weight [F, D] ([2 F, D] where it is gated)   .down.weight [D, F]   .feed_forward_norm.gain, .bias
//   decoder.layers.N: as those, and between the two .cross_q.weight [H K, D]   .cross_kv.weight [2 H K, the encoder's D]
//                     .cross_out.weight [D, H K]   .cross_norm.gain, .bias [1, D]
//   bridge.weight [D, the encoder's D], where the two widths differ, and the keys and values have the decoder's
//   pooler.weight [D, D], which nobody reads: BERT's files have it
//   head_dense.weight [D, D], head_norm.gain, .bias [1, D]: of BERT's head
//   head.weight [V, D], where it is not an embedding   head.bias [1, V]
// Each matrix has a bias where the configuration says so.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "models/model.h"
#include "models/model_config.h"
#include "ops/tape/tape_ops.h"
#include "tensor/parameter.h"
#include "tensor/tape.h"

namespace brisk {

struct EncoderDecoderConfig {
  // The sizes of one of the two.
  struct Stack {
    int64_t d_model = 512;     // D
    int64_t num_layers = 6;    // L
    int64_t num_heads = 8;     // H
    int64_t head_width = 64;   // K
    int64_t d_ff = 2048;       // F
    int64_t max_length = 128;  // T: the longest text, and rows of the table of positions
    int64_t types = 0;         // rows of a table of token types; 0: there is none
    bool operator==(const Stack&) const = default;
  };
  int64_t source_vocab_size = 0, target_vocab_size = 0;  // V
  Stack encoder, decoder;

  bool pre_norm = true;  // x + f(norm(x)), and a norm after the last layer of each stack; otherwise norm(x + f(x))
  bool embedding_norm = false;
  NormKind norm = NormKind::layer;
  double norm_epsilon = 1e-5;
  enum class FeedForward : uint8_t {
    relu,
    gelu_tanh,
    gelu_erf,
    silu,
    gated_gelu,
    gated_silu
  } feed_forward = FeedForward::relu;
  // Sinusoids: all sines and then all cosines, as Marian has them, or in turns, as the original transformer.
  enum class Positions : uint8_t {
    learned,
    sinusoidal,
    interleaved_sinusoidal,
    relative,
    rotary,
    none
  } positions = Positions::sinusoidal;
  int64_t position_offset = 0;      // rows of the table before that of the first position: BART has 2
  int64_t relative_buckets = 32;    // of distances, T5's: near ones have one each, ...
  int64_t relative_distance = 128;  // ... and from this one on all share the last
  double rope_theta = 10000;
  bool scale_embeddings = true;  // by the square root of D
  bool scale_attention = true;   // by 1 / the square root of K
  bool scale_head = false;       // its inputs by 1 / the square root of D
  bool bias = true;              // in linear layers and layer norms
  bool share_embeddings = true;  // source and target have one table
  bool tie_head = true;          // the output projection is the target's table
  enum class HeadBias : uint8_t { none, fixed, trained } head_bias = HeadBias::none;
  bool head_transform = false;     // a matrix, the activation and a norm before the output projection, as in BERT
  int64_t first_token = -1;        // that the decoder reads before a target; -1: the tokenizer says
  bool lone_pooler = false;        // the encoder has a pooler, which nobody reads
  double dropout = 0.1;            // of embeddings and of what each part of a layer adds
  double attention_dropout = 0.1;  // of attention's probabilities
  double activation_dropout = 0;   // of what the activation makes, where it is not gated

  bool is_gated() const { return feed_forward == FeedForward::gated_gelu || feed_forward == FeedForward::gated_silu; }
  std::unique_ptr<Model> make(ParameterStore& store) const;
  ModelWidths widths() const;
  uint64_t fingerprint() const;
  bool operator==(const EncoderDecoderConfig&) const = default;
};

class EncoderDecoder final : public TextToTextModel {
 public:
  EncoderDecoder(const EncoderDecoderConfig& config, ParameterStore& store);

  const EncoderDecoderConfig& config() const { return config_; }
  LossValues loss(Tape& tape, const LossOptions& options) const override;
  Value encode(Tape& tape) const override;
  Value next_token_logits(Tape& tape) const override;
  Value logits(Tape& tape) const override;
  CacheShape cache_shape() const override { return {config_.decoder.num_layers, inner_width()}; }
  int64_t memory_width() const override { return 2 * config_.decoder.num_layers * inner_width(); }
  int64_t source_vocab_size() const override { return config_.source_vocab_size; }
  int64_t target_vocab_size() const override { return config_.target_vocab_size; }
  int64_t max_source_length() const override { return config_.encoder.max_length; }
  int64_t max_target_length() const override { return config_.decoder.max_length; }
  int64_t first_token() const override { return config_.first_token; }

 private:
  struct Matrix {
    Parameter *weight, *bias;  // bias may be none
  };
  struct Norm {
    Parameter *gain, *bias;
  };
  struct Layer {
    Matrix qkv, attention_out;
    Norm attention_norm;
    Matrix cross_q, cross_kv, cross_out;  // of the decoder; so is
    Norm cross_norm;
    Matrix up, down;
    Norm feed_forward_norm;
  };
  struct Stack {
    EncoderDecoderConfig::Stack sizes;
    Parameter *table, *positions, *types, *relative;  // each but the table may be none
    Norm embedding_norm, final_norm;                  // may be none
    std::vector<Layer> layers;
  };
  class Declaration;

  int64_t inner_width() const { return config_.decoder.num_heads * config_.decoder.head_width; }
  AttentionShape attention_shape(const EncoderDecoderConfig::Stack& sizes, bool causal) const;
  Value embed(Tape& tape, const Stack& stack, int row_set) const;
  Value normed(Tape& tape, Value x, const Norm& norm) const;
  // What a part of a layer reads of the stream `h`, and the stream after it: the sum of h and what the part's last product
  // makes of x.
  Value entering(Tape& tape, Value h, const Norm& norm) const;
  Value leaving(Tape& tape, Value h, Value x, const Matrix& last, const Norm& norm) const;
  Value add_self_attention(Tape& tape, const Stack& stack, const Layer& layer, Value h, Value bias, bool causal) const;
  Value add_feed_forward(Tape& tape, const Layer& layer, Value h) const;
  // The bias of every distance, of which all layers read; none without relative positions. `longest`: the most keys.
  Value relative_positions(Tape& tape, const Stack& stack, int64_t longest, bool causal) const;
  // What cross-attention's keys and values are made of, [N, D].
  Value encoded(Tape& tape) const;
  // The last layer's output of the target's rows. `source`: what was encoded; none: a cache's memory has it.
  Value decoded(Tape& tape, int row_set, Value source) const;
  Value head_input(Tape& tape, Value h) const;

  EncoderDecoderConfig config_;
  Stack encoder_{}, decoder_{};
  Matrix bridge_{};
  Matrix head_dense_{};
  Norm head_norm_{};
  Matrix head_{};
};

}  // namespace brisk
