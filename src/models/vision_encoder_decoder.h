// A model that reads an image and writes a text: an image encoder, and a decoder that sees its rows by cross-attention.
// Captioning (ViT and GPT-2), text recognition (TrOCR), documents (Donut, Nougat) are such models.
//
//   ParameterStore store;
//   VisionEncoderDecoder model(config, store);                   // declares the parameters
//   LossValues loss = model.loss(tape, {});                      // row set 0: patches; row set 1: targets; then the
//                                                                // encoder's own (config.image_layout())
//
// Parameters: encoder... (models/image_encoder.h), and the decoder's (models/text_decoder.h).
#pragma once

#include <cstdint>
#include <memory>

#include "image/image_input.h"
#include "models/image_encoder.h"
#include "models/model.h"
#include "models/model_config.h"
#include "models/text_decoder.h"

namespace brisk {

struct VisionEncoderDecoderConfig {
  ImageEncoderConfig encoder;
  TextDecoderConfig decoder;

  ImageLayout image_layout() const { return {{encoder.input()}, encoder.fixed_rows()}; }
  std::unique_ptr<Model> make(ParameterStore& store) const;
  ModelWidths widths() const;
  uint64_t fingerprint() const;
  bool operator==(const VisionEncoderDecoderConfig&) const = default;
};

class VisionEncoderDecoder final : public ConditionalModel {
 public:
  VisionEncoderDecoder(const VisionEncoderDecoderConfig& config, ParameterStore& store);

  LossValues loss(Tape& tape, const LossOptions& options) const override;
  int64_t image_encoders() const override { return 1; }
  EncodedImages record_image_encoder(Tape& tape, int64_t encoder) const override;
  Value encode(Tape& tape) const override;
  Value next_token_logits(Tape& tape) const override;
  Value logits(Tape& tape) const override;
  CacheShape cache_shape() const override { return decoder_.cache_shape(); }
  int memory_set() const override;
  int64_t memory_width() const override { return decoder_.memory_width(); }
  int64_t max_memory_rows() const override { return config_.encoder.rows(); }
  int64_t target_vocab_size() const override { return config_.decoder.vocab_size; }
  int64_t max_target_length() const override { return config_.decoder.sizes.max_length; }
  int64_t first_token() const override { return config_.decoder.options.first_token; }

 private:
  Value encoded(Tape& tape) const;

  VisionEncoderDecoderConfig config_;
  ImageEncoder encoder_;
  TextDecoder decoder_;
};

}  // namespace brisk
