// The encoder-decoder, which reads one text and writes another: the original transformer, Marian, BART, T5, and a BERT that
// reads for a BERT that writes, by options.
//
//   ParameterStore store;
//   EncoderDecoder model(config, store);                         // declares the parameters
//   Tape tape({.rows = {{4096, 64, 128}, {4096, 64, 128}}});     // row set 0: sources; row set 1: targets
//   LossValues loss = model.loss(tape, {});                      // records one training or evaluation run
//
// Parameters, [rows, columns]; D is the decoder's width, V the text's own vocabulary:
//   embedding.weight [V, D], of both texts; or source_embedding.weight and target_embedding.weight
//   encoder...   (models/transformer_stack.h)
//   decoder..., bridge.weight, head...   (models/text_decoder.h)
//   pooler.weight [D, D], which nobody reads: BERT's files have it; D is the encoder's
#pragma once

#include <cstdint>
#include <memory>

#include "models/model.h"
#include "models/model_config.h"
#include "models/text_decoder.h"
#include "models/transformer_stack.h"
#include "ops/tape/tape_ops.h"
#include "tensor/parameter.h"
#include "tensor/tape.h"

namespace brisk {

struct EncoderDecoderConfig : StackOptions {
  using Stack = StackSizes;
  int64_t source_vocab_size = 0, target_vocab_size = 0;  // V
  Stack encoder, decoder;
  bool share_embeddings = true;  // source and target have one table
  bool lone_pooler = false;      // the encoder has a pooler, which nobody reads

  TextDecoderConfig decoder_config() const { return {*this, decoder, target_vocab_size}; }
  std::unique_ptr<Model> make(ParameterStore& store) const;
  ModelWidths widths() const;
  uint64_t fingerprint() const;
  bool operator==(const EncoderDecoderConfig&) const = default;
};

class EncoderDecoder final : public ConditionalModel {
 public:
  EncoderDecoder(const EncoderDecoderConfig& config, ParameterStore& store);

  const EncoderDecoderConfig& config() const { return config_; }
  LossValues loss(Tape& tape, const LossOptions& options) const override;
  Value encode(Tape& tape) const override;
  Value next_token_logits(Tape& tape) const override;
  Value logits(Tape& tape) const override;
  CacheShape cache_shape() const override { return decoder_.cache_shape(); }
  int64_t memory_width() const override { return decoder_.memory_width(); }
  int64_t max_memory_rows() const override { return config_.encoder.max_length; }
  int64_t target_vocab_size() const override { return config_.target_vocab_size; }
  int64_t max_target_length() const override { return config_.decoder.max_length; }
  int64_t first_token() const override { return config_.first_token; }

 private:
  struct Tables {
    Parameter *source, *target;
  };
  EncoderDecoder(const EncoderDecoderConfig& config, ParameterStore& store, const Tables& tables);
  static Tables declare_tables(const EncoderDecoderConfig& config, ParameterStore& store);
  Value encoded(Tape& tape) const { return encoder_.output(tape, 0, {}); }

  EncoderDecoderConfig config_;
  TransformerStack encoder_;
  TextDecoder decoder_;
};

}  // namespace brisk
