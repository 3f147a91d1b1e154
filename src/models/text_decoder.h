// The decoder of a model that reads something (a text, an image) and writes a text: it sees what an encoder made of that by
// cross-attention. A part of models: EncoderDecoder, VisionEncoderDecoder, ... own one.
//
//   TextDecoder decoder(config, /*source_width=*/768, store);
//   LossValues loss = decoder.loss(tape, encoded, {});                 // of the rows of set 1, the targets
//   Value memory = decoder.memory(tape, encoded);                      // decoding: of every source once, ...
//   Value next = decoder.next_token_logits(tape, most_source_rows);    // ... and one token of every text so far
//
// Parameters, [rows, columns]; D is the decoder's width, V its vocabulary (models/transformer_stack.h has those of its layers):
//   target_embedding.weight [V, D], where it is given no other table
//   decoder...
//   bridge.weight [D, the source's width], where the two widths differ, and the keys and values have the decoder's
//   head_dense.weight [D, D], head_norm.gain, .bias [1, D]: of BERT's head
//   head.weight [V, D], where it is not the embedding   head.bias [1, V]
// Each matrix has a bias where the options say so.
#pragma once

#include <cstdint>

#include "models/model.h"
#include "models/transformer_stack.h"
#include "ops/tape/tape_ops.h"
#include "tensor/parameter.h"
#include "tensor/tape.h"

namespace brisk {

struct TextDecoderConfig {
  StackOptions options;
  StackSizes sizes;
  int64_t vocab_size = 0;  // V
  bool bridge = true;  // a matrix where the source's width is another; otherwise cross-attention's own have its columns

  uint64_t fingerprint() const;
  bool operator==(const TextDecoderConfig&) const = default;
};

class TextDecoder {
 public:
  // `table`: of tokens, where another part of the model declares it.
  TextDecoder(const TextDecoderConfig& config, int64_t source_width, ParameterStore& store, Parameter* table = nullptr);

  // `source`: [rows, source_width] of any row set.
  LossValues loss(Tape& tape, Value source, const LossOptions& options) const;
  Value logits(Tape& tape, Value source) const;  // of all rows of the targets, [N, V], read back
  // For decoding (ConditionalModel): `most_source_rows`: of one source.
  Value memory(Tape& tape, Value source) const;
  Value next_token_logits(Tape& tape, int64_t most_source_rows) const;
  CacheShape cache_shape() const { return {config_.sizes.num_layers, stack_.inner_width()}; }
  int64_t memory_width() const { return 2 * config_.sizes.num_layers * stack_.inner_width(); }

  const TextDecoderConfig& config() const { return config_; }

 private:
  Value bridged(Tape& tape, Value source) const;
  Value decoded(Tape& tape, Value source) const;  // what the output projection reads, of the targets' rows
  Value head_input(Tape& tape, Value h) const;

  TextDecoderConfig config_;
  Parameter* table_;
  TransformerStack stack_;
  TransformerStack::Matrix bridge_, head_dense_, head_;
  TransformerStack::Norm head_norm_;
};

}  // namespace brisk
