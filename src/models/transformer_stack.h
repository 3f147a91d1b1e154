// A stack of transformer layers over embedded tokens, for the encoder or the decoder of a model that has both: self-attention,
// cross-attention where it reads a source, feed-forward blocks; pre-norm or post-norm, and the other options by which the
// original transformer, Marian, BART, T5, BERT and GPT-2 differ. Learned queries that read an image are such a stack, too.
//
//   TransformerStack encoder(options, sizes, store, "encoder", {.table = table});
//   Value h = encoder.output(tape, 0, {});                        // of the rows of set 0
//   TransformerStack decoder(options, sizes, store, "decoder", {.table = table, .source_width = 512, .causal = true});
//   Value y = decoder.output(tape, 1, {.rows = h});               // each row sees those before it, and its source's
//
// Parameters, [rows, columns]; D, H, K and F are the stack's:
//   NAME.positions.weight [offset + T, D]: learned, or sinusoids, which are not trained
//   NAME.types.weight [types, D], of which every row gets the first
//   NAME.relative.weight [buckets, H], of all layers
//   NAME.embedding_norm.gain, .bias [1, D], and NAME.final_norm.gain, .bias
//   NAME.layers.N.qkv.weight [3 H K, D]   .attention_out.weight [D, H K]   .attention_norm.gain, .bias [1, D]
//   NAME.layers.N.cross_q.weight [H K, D]   .cross_kv.weight [2 H K, the source's width]   .cross_out.weight [D, H K]
//                .cross_norm.gain, .bias [1, D], where it reads a source
//   NAME.layers.N.up.weight [F, D] ([2 F, D] where it is gated)   .down.weight [D, F]   .feed_forward_norm.gain, .bias
// Each matrix has a bias where the options say so.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "ops/tape/tape_ops.h"
#include "tensor/parameter.h"
#include "tensor/tape.h"

namespace brisk {

struct StackSizes {
  int64_t d_model = 512;     // D
  int64_t num_layers = 6;    // L
  int64_t num_heads = 8;     // H
  int64_t head_width = 64;   // K
  int64_t d_ff = 2048;       // F
  int64_t max_length = 128;  // T: the longest text, and rows of the table of positions
  int64_t types = 0;         // rows of a table of token types; 0: there is none
  bool operator==(const StackSizes&) const = default;
};

// What layers are like, and the head that predicts tokens from the last one's output.
struct StackOptions {
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
  bool tie_head = true;          // the output projection is the target's table
  enum class HeadBias : uint8_t { none, fixed, trained } head_bias = HeadBias::none;
  bool head_transform = false;     // a matrix, the activation and a norm before the output projection, as in BERT
  int64_t first_token = -1;        // that the decoder reads before a target; -1: the tokenizer says
  double dropout = 0.1;            // of embeddings and of what each part of a layer adds
  double attention_dropout = 0.1;  // of attention's probabilities
  double activation_dropout = 0;   // of what the activation makes, where it is not gated
  double final_dropout = 0;        // of what the last norm makes, where there is one: T5

  bool is_gated() const { return feed_forward == FeedForward::gated_gelu || feed_forward == FeedForward::gated_silu; }
  Activation activation() const;
  bool operator==(const StackOptions&) const = default;
};

// For ArchitectureConfig::fingerprint(): every field that changes the function.
uint64_t fingerprint_of_stack(const StackSizes& sizes);
uint64_t fingerprint_of_stack(const StackOptions& options);

// Declares parameters, those of one part of a model after those of another.
class StackDeclaration {
 public:
  StackDeclaration(const StackOptions& options, ParameterStore& store) : options_(options), store_(store) {}

  struct Matrix {
    Parameter *weight = nullptr, *bias = nullptr;  // bias may be none
  };
  struct Norm {
    Parameter *gain = nullptr, *bias = nullptr;
  };

  // What is declared next is of this part of the model, and counted in this component of it.
  void begin(std::string prefix, std::string component) {
    prefix_ = std::move(prefix);
    component_ = std::move(component);
  }
  void count_in(std::string component) { component_ = std::move(component); }

  // With sums of unit variance after the scaling, where there is one, and logits of unit variance where it is the head.
  Parameter* table(const std::string& name, int64_t rows, int64_t D, bool multiplies);
  Matrix matrix(const std::string& name, int64_t rows, int64_t cols, double deviation = 0.02,
                std::vector<int64_t> parts = {});
  Norm norm(const std::string& name, int64_t D);
  Parameter* vector(const std::string& name, int64_t cols, Initial initial = {}, bool trained = true);
  Parameter* types(int64_t rows, int64_t D);
  Parameter* relative(int64_t heads);
  Parameter* positions(int64_t max_length, int64_t D);  // none where there is no table of them

 private:
  const StackOptions& options_;
  ParameterStore& store_;
  std::string prefix_, component_;
};

class TransformerStack {
 public:
  using Matrix = StackDeclaration::Matrix;
  using Norm = StackDeclaration::Norm;
  struct Reads {
    Parameter* table = nullptr;  // of tokens
    int64_t source_width = 0;    // of what cross-attention reads; 0: there is none
    bool causal = false;         // rows do not see those after them
  };
  TransformerStack(const StackOptions& options, const StackSizes& sizes, ParameterStore& store, const std::string& name,
                   const Reads& reads);

  // What cross-attention reads: rows of another set; or a cache's memory, of at most so many rows for each sequence.
  struct Source {
    Value rows{};
    int64_t longest = 0;
  };
  // The last layer's output, [N, D].
  Value output(Tape& tape, int row_set, const Source& source) const;
  // What a cache's memory has of these rows: the keys and values of all layers side by side, [N, 2 L H K].
  Value memory(Tape& tape, Value source) const;

  Value normed(Tape& tape, Value x, const Norm& norm) const;
  const StackSizes& sizes() const { return sizes_; }
  int64_t inner_width() const { return sizes_.num_heads * sizes_.head_width; }

 private:
  struct Layer {
    Matrix qkv, attention_out;
    Norm attention_norm;
    Matrix cross_q, cross_kv, cross_out;  // where it reads a source
    Norm cross_norm;
    Matrix up, down;
    Norm feed_forward_norm;
  };

  AttentionShape attention_shape(bool causal) const;
  Value embed(Tape& tape, int row_set) const;
  // What a part of a layer reads of the stream `h`, and the stream after it: the sum of h and what the part's last product
  // makes of x.
  Value entering(Tape& tape, Value h, const Norm& norm) const;
  Value leaving(Tape& tape, Value h, Value x, const Matrix& last, const Norm& norm) const;
  Value add_self_attention(Tape& tape, const Layer& layer, Value h, Value bias) const;
  Value add_cross_attention(Tape& tape, size_t layer, Value h, const Source& source) const;
  Value add_feed_forward(Tape& tape, const Layer& layer, Value h) const;

  StackOptions options_;
  StackSizes sizes_;
  Parameter* table_;
  bool reads_source_, causal_;
  Parameter *positions_ = nullptr, *types_ = nullptr, *relative_ = nullptr;  // each may be none
  Norm embedding_norm_, final_norm_;                                         // likewise
  std::vector<Layer> layers_;
};

}  // namespace brisk
