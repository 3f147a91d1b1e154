// The encoder that reads in both directions: BERT, DistilBERT and RoBERTa by options, with a head that names a class or
// one that finds masked words.
//
//   ParameterStore store;
//   Encoder encoder(config, store);                        // declares the parameters
//   Tape tape({.rows = {{4096, 64, 512}, {64, 64, 1}}});   // row set 0: tokens; row set 1: the rows that matter
//   LossValues loss = encoder.loss(tape, {});              // records one training or evaluation run
//
// Row set 1 (DeviceBatch::Set::source says which rows of set 0 it is) is the first row of each sequence for a class,
// and the masked rows for masked words. Nobody reads the other rows after the last layer, so that layer makes keys and
// values of all rows and the rest of these rows alone: the same gradients, and five sixths of a layer less to compute.
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

struct EncoderConfig {
  int64_t vocab_size = 0;       // V
  int64_t d_model = 768;        // D
  int64_t num_layers = 12;      // L
  int64_t num_heads = 12;       // H
  int64_t d_ff = 3072;          // F
  int64_t max_length = 512;     // T: the longest text
  int64_t position_offset = 0;  // rows of the position table before that of the first position: RoBERTa has 2
  int64_t types = 0;            // token types: BERT 2, DistilBERT 0 (no table), RoBERTa 1
  double norm_epsilon = 1e-12;
  enum class FeedForward : uint8_t { gelu_erf, gelu_tanh, relu } feed_forward = FeedForward::gelu_erf;
  double dropout = 0.1;             // of embeddings and of what each half of a layer adds
  double attention_dropout = 0.1;   // of attention's probabilities
  double classifier_dropout = 0.1;  // of what the classifier reads

  // What stands on the last layer. A class: `pooler` (a matrix and tanh, or ReLU), dropout, `classifier`; RoBERTa drops
  // before the pooler too. Masked words: `mlm_dense`, GELU, norm, and the product with the embedding table.
  // Nothing: an encoder of another program that was saved without a head, to be trained from.
  enum class Head : uint8_t { pooler_tanh, relu, roberta, mlm, none } head = Head::pooler_tanh;
  bool lone_pooler = false;      // with no head: there is a `pooler` all the same, as BERT's own files have it
  int64_t num_labels = 2;        // C
  bool prune_last_layer = true;  // false: the last layer computes every row, and the picked ones are taken after it

  // Fine-tuning. What is frozen has no gradient, and nothing below the lowest trained layer has a backward.
  bool frozen_embeddings = false;  // tables and their norm
  int64_t frozen_layers = 0;       // the first so many, and the embeddings below them
  bool frozen_dropout = false;     // what is frozen drops as the rest does; otherwise it is the same function always
  // > 0: the first so many layers, all frozen, are not computed: what they make of a text comes with the micro-batch
  // (rows_after), as the inputs of row set 0, or of set 1 where these are all the layers.
  int64_t cached_layers = 0;

  int64_t head_width() const { return d_model / num_heads; }
  bool is_classifier() const { return head != Head::mlm && head != Head::none; }
  bool trains_embeddings() const { return !frozen_embeddings && frozen_layers == 0; }
  bool trains_layer(int64_t layer) const { return layer >= frozen_layers; }
  // The most layers whose outputs are the same in every epoch. RoBERTa's head drops what the last layer writes.
  int64_t cacheable_layers() const;

  std::unique_ptr<Model> make(ParameterStore& store) const;
  ModelWidths widths() const { return {d_model, d_ff}; }
  uint64_t fingerprint() const;
  bool operator==(const EncoderConfig&) const = default;
};

class Encoder final : public Model {
 public:
  Encoder(const EncoderConfig& config, ParameterStore& store);

  const EncoderConfig& config() const { return config_; }
  // Of the rows of set 1, whose targets and weights it reads. The bias of `options` is the head's own.
  LossValues loss(Tape& tape, const LossOptions& options) const override;
  int64_t classes() const override { return config_.is_classifier() ? config_.num_labels : 0; }
  // [rows of set 1, C], read back: what a prediction reads.
  Value class_logits(Tape& tape) const override;
  // [rows of set 1, C or V], read back: what the head, whichever it is, makes of them.
  Value head_logits(Tape& tape) const;
  // What the first `layers` layers make of the tokens, read back, of the tape's activation type: [rows of set 0, D], or
  // of set 1 where these are all the layers. An encoder with so many cached_layers goes on from there.
  Value rows_after(Tape& tape, int64_t layers) const;

 private:
  struct Matrix {
    Parameter *weight, *bias;
  };
  struct Norm {
    Parameter *gain, *bias;
  };
  struct Layer {
    Matrix qkv, attention_out;
    Norm attention_norm;
    Matrix up, down;
    Norm feed_forward_norm;
  };
  struct Drops {
    double attention, sums, output;
  };
  Drops drops_of(int64_t layer) const;
  Value embed(Tape& tape) const;
  // Layers [begin, end) on the rows `h`; the last of all ends with the rows of set 1.
  Value run_layers(Tape& tape, Value h, int64_t begin, int64_t end) const;
  // The last layer's output for the rows of set 1, [rows, D].
  Value picked_hidden(Tape& tape) const;
  // What the last product of the head reads.
  Value head_input(Tape& tape) const;
  // The part of a layer after attention; `h` is what the layer read.
  Value finish_layer(Tape& tape, const Layer& layer, Value mixed, Value h, const Drops& drops) const;

  EncoderConfig config_;
  Parameter* table_ = nullptr;
  Parameter* positions_ = nullptr;
  Parameter* types_ = nullptr;
  Norm embedding_norm_{};
  std::vector<Layer> layers_;
  Matrix head_dense_{};    // pooler or mlm_dense
  Norm head_norm_{};       // mlm_norm
  Matrix head_product_{};  // classifier, or the table with mlm.bias
};

}  // namespace brisk
