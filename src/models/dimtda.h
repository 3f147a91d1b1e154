// DIMTDA, which reads the image of a page and writes its text, translated: two image encoders, one for what is written (a
// Swin, Nougat's) and one for the layout (a BEiT, DiT's); learned queries that read each of them (Q-Formers); a gate that
// mixes what the two read; and a decoder.
//
//   alpha = sigmoid(w [n; d] + b), a number for each query;   q = alpha n + (1 - alpha) d
//
//   ParameterStore store;
//   Dimtda model(config, store);                 // declares the parameters
//   LossValues loss = model.loss(tape, {});      // row sets: 0: the page's patches, 1: targets, 2: the layout's patches, then
//                                                // those of config.image_layout(), of which the queries are the last
//
// Parameters, [rows, columns]; Q queries of width W, E the page encoder's width, C the layout encoder's:
//   page_encoder..., layout_encoder... (models/image_encoder.h), layout_projection.weight [E, C], .bias [1, E]
//   layout_unread.mask_token, layout_unread.pooler_norm.gain, .bias [1, C], which DiT's files have
//   page_queries.queries.weight [Q, W], page_queries... (models/transformer_stack.h); layout_queries...
//   gate.weight [1, 2 W], gate.bias [1, 1]   fusion.weight [E, W], fusion.bias [1, E]
//   and the decoder's (models/text_decoder.h), of which bridge leads from E to its width
#pragma once

#include <cstdint>
#include <memory>

#include "image/image_input.h"
#include "models/image_encoder.h"
#include "models/model.h"
#include "models/model_config.h"
#include "models/text_decoder.h"
#include "models/transformer_stack.h"

namespace brisk {

struct DimtdaConfig {
  ImageEncoderConfig page, layout;
  int64_t queries = 256;      // Q
  StackOptions query_layers;  // of both Q-Formers
  StackSizes query_sizes;     // likewise: d_model is W, max_length nothing
  TextDecoderConfig decoder;

  ImageLayout image_layout() const;
  std::unique_ptr<Model> make(ParameterStore& store) const;
  ModelWidths widths() const;
  uint64_t fingerprint() const;
  bool operator==(const DimtdaConfig&) const = default;

  // What no option changes: post-norm and exact GELU as BERT has them, queries that are normalized first.
  static StackOptions query_layers_with(double dropout, double attention_dropout);
};

class Dimtda final : public ConditionalModel {
 public:
  Dimtda(const DimtdaConfig& config, ParameterStore& store);

  LossValues loss(Tape& tape, const LossOptions& options) const override;
  int64_t image_encoders() const override { return 2; }  // of the page, of its layout
  EncodedImages record_image_encoder(Tape& tape, int64_t encoder) const override;
  Value encode(Tape& tape) const override;
  Value next_token_logits(Tape& tape) const override;
  Value logits(Tape& tape) const override;
  CacheShape cache_shape() const override { return decoder_.cache_shape(); }
  int memory_set() const override { return query_set(); }
  int64_t memory_width() const override { return decoder_.memory_width(); }
  int64_t max_memory_rows() const override { return config_.queries; }
  int64_t target_vocab_size() const override { return config_.decoder.vocab_size; }
  int64_t max_target_length() const override { return config_.decoder.sizes.max_length; }
  int64_t first_token() const override { return config_.decoder.options.first_token; }

 private:
  int first_layout_set() const;
  int query_set() const;
  Value encoded(Tape& tape) const;

  DimtdaConfig config_;
  ImageEncoder page_, layout_;
  StackDeclaration::Matrix layout_projection_;
  TransformerStack page_queries_, layout_queries_;
  Parameter *gate_, *gate_bias_;  // [1, 2 W], [1, 1]
  StackDeclaration::Matrix fusion_;
  TextDecoder decoder_;
};

}  // namespace brisk
