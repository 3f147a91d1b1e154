// The config.json of Hugging Face encoder-decoders, converted to and from brisk's model options: Marian (the OPUS-MT models),
// Pegasus, BART, mBART, T5, and EncoderDecoderModel of two BERTs.
//
//   if (is_huggingface_encoder_decoder(folder)) {
//     const HuggingFaceEncoderDecoderConfig config = read_encoder_decoder_config(folder);      // UserError if unsupported
//     job.model = config.model;
//
//   const HuggingFaceEncoderDecoderConfig config = encoder_decoder_config_for(job.model);      // UserError: no shape fits
//   write_file_atomically(folder + "/config.json", to_json_text(config, SafetensorsType::f32, source, target));
#pragma once

#include <cstdint>
#include <string>

#include "hub/formats/safetensors.h"
#include "hub/huggingface/config_reader.h"
#include "job/job.h"
#include "text/tokenizer.h"

namespace brisk {

struct HuggingFaceEncoderDecoderConfig {
  // With sinusoids and norms after each block (marian) or before (pegasus); with learned positions likewise (bart, mbart);
  // with relative positions (t5); an EncoderDecoderModel.
  enum class Shape : uint8_t { marian, pegasus, bart, mbart, t5, two_berts } shape = Shape::marian;
  ModelOptions model;  // of T5, whose files decide it, tie_embeddings is true
};

// `folder` holds a config.json whose model_type is one of these.
bool is_huggingface_encoder_decoder(const std::string& folder);

// UserError where the file is missing or damaged, or asks for what brisk does not compute.
HuggingFaceEncoderDecoderConfig read_encoder_decoder_config(const std::string& folder);
HuggingFaceEncoderDecoderConfig read_encoder_decoder_config(const ConfigReader& reader);

// The shape that can express these options. UserError that names the option in the way.
HuggingFaceEncoderDecoderConfig encoder_decoder_config_for(const ModelOptions& model);

// What transformers calls it: "MarianMTModel".
std::string class_of(HuggingFaceEncoderDecoderConfig::Shape shape);

// The special tokens of what it writes (the decoder's first token, end, padding).
struct WrittenTokens {
  TokenId start = 0, end = 0, padding = 0;
};
WrittenTokens written_tokens(const Tokenizer& target);

std::string to_json_text(const HuggingFaceEncoderDecoderConfig& config, SafetensorsType weights,
                         const WrittenTokens& tokens);

}  // namespace brisk
