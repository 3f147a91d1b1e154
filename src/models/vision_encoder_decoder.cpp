#include "models/vision_encoder_decoder.h"

#include <algorithm>

namespace brisk {

VisionEncoderDecoder::VisionEncoderDecoder(const VisionEncoderDecoderConfig& config, ParameterStore& store)
    : config_(config),
      encoder_(config.encoder, store, "encoder."),
      decoder_(config.decoder, config.encoder.width(), store) {}

Value VisionEncoderDecoder::encoded(Tape& tape) const { return encoder_.record(tape, kPixelSet, kFirstFixedSet).rows; }

EncodedImages VisionEncoderDecoder::record_image_encoder(Tape& tape, int64_t /*encoder*/) const {
  const ImageEncoder::Output made = encoder_.record(tape, kPixelSet, kFirstFixedSet);
  return {made.rows, made.set};
}

int VisionEncoderDecoder::memory_set() const { return encoder_.output_set(kPixelSet, kFirstFixedSet); }

LossValues VisionEncoderDecoder::loss(Tape& tape, const LossOptions& options) const {
  return decoder_.loss(tape, encoded(tape), options);
}

Value VisionEncoderDecoder::logits(Tape& tape) const { return decoder_.logits(tape, encoded(tape)); }

Value VisionEncoderDecoder::encode(Tape& tape) const { return decoder_.memory(tape, encoded(tape)); }

Value VisionEncoderDecoder::next_token_logits(Tape& tape) const {
  return decoder_.next_token_logits(tape, config_.encoder.rows());
}

std::unique_ptr<Model> VisionEncoderDecoderConfig::make(ParameterStore& store) const {
  return std::make_unique<VisionEncoderDecoder>(*this, store);
}

ModelWidths VisionEncoderDecoderConfig::widths() const {
  return {std::max(encoder.width(), decoder.sizes.d_model), std::max(encoder.widest_d_ff(), decoder.sizes.d_ff)};
}

uint64_t VisionEncoderDecoderConfig::fingerprint() const {
  return fingerprint_of("vision_encoder_decoder", encoder.fingerprint(), decoder.fingerprint());
}

}  // namespace brisk
