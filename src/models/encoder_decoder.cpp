#include "models/encoder_decoder.h"

#include <algorithm>

#include "base/error.h"

namespace brisk {

EncoderDecoder::Tables EncoderDecoder::declare_tables(const EncoderDecoderConfig& config, ParameterStore& store) {
  const int64_t D = config.decoder.d_model;
  BRISK_CHECK(
      !config.share_embeddings || (config.encoder.d_model == D && config.source_vocab_size == config.target_vocab_size),
      "one table of {} x {} and of {} x {}", config.source_vocab_size, config.encoder.d_model, config.target_vocab_size,
      D);
  StackDeclaration declare(config, store);
  if (config.share_embeddings) {
    Parameter* const table = declare.table("embedding", config.target_vocab_size, D, config.tie_head);
    return {table, table};
  }
  Parameter* const source = declare.table("source_embedding", config.source_vocab_size, config.encoder.d_model, false);
  return {source, declare.table("target_embedding", config.target_vocab_size, D, config.tie_head)};
}

EncoderDecoder::EncoderDecoder(const EncoderDecoderConfig& config, ParameterStore& store)
    : EncoderDecoder(config, store, declare_tables(config, store)) {}

EncoderDecoder::EncoderDecoder(const EncoderDecoderConfig& config, ParameterStore& store, const Tables& tables)
    : config_(config),
      encoder_(config, config.encoder, store, "encoder", {.table = tables.source}),
      decoder_(config.decoder_config(), config.encoder.d_model, store, tables.target) {
  if (!config.lone_pooler) return;
  StackDeclaration declare(config, store);
  declare.begin("", "head");
  declare.matrix("pooler", config.encoder.d_model, config.encoder.d_model);
}

LossValues EncoderDecoder::loss(Tape& tape, const LossOptions& options) const {
  return decoder_.loss(tape, encoded(tape), options);
}

Value EncoderDecoder::logits(Tape& tape) const { return decoder_.logits(tape, encoded(tape)); }

Value EncoderDecoder::encode(Tape& tape) const { return decoder_.memory(tape, encoded(tape)); }

Value EncoderDecoder::next_token_logits(Tape& tape) const {
  return decoder_.next_token_logits(tape, config_.encoder.max_length);
}

std::unique_ptr<Model> EncoderDecoderConfig::make(ParameterStore& store) const {
  return std::make_unique<EncoderDecoder>(*this, store);
}

ModelWidths EncoderDecoderConfig::widths() const {
  return {std::max(encoder.d_model, decoder.d_model), std::max(encoder.d_ff, decoder.d_ff)};
}

uint64_t EncoderDecoderConfig::fingerprint() const {
  // Not the pooler: nobody reads it.
  return fingerprint_of("encoder_decoder", fingerprint_of_stack(*this), source_vocab_size, target_vocab_size,
                        fingerprint_of_stack(encoder), fingerprint_of_stack(decoder), share_embeddings);
}

}  // namespace brisk
