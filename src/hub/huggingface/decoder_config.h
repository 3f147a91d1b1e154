// The config.json of Hugging Face decoders (GPT-2, Llama, Mistral), converted to and from brisk's model options.
//
//   const HuggingFaceDecoderConfig config = read_decoder_config("gpt2");   // the folder; UserError if unsupported
//   job.model = config.model;
//
//   const HuggingFaceDecoderConfig config = huggingface_config_for(job.model);   // UserError: no shape fits
//   write_file_atomically(folder + "/config.json", to_json_text(config, ...));
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "hub/formats/safetensors.h"
#include "hub/huggingface/config_reader.h"
#include "job/job.h"
#include "text/tokenizer.h"

namespace brisk {

struct HuggingFaceDecoderConfig {
  enum class Shape : uint8_t { gpt2, llama } shape = Shape::gpt2;
  ModelOptions model;           // `context` included
  bool attention_bias = false;  // of llama: which of its products have biases
  bool feed_forward_bias = false;
};

// `folder` holds a config.json. UserError where the file is missing or damaged, and for an architecture, or a feature
// of one, that brisk does not support: the message names what was found and what is supported.
HuggingFaceDecoderConfig read_decoder_config(const std::string& folder);
HuggingFaceDecoderConfig read_decoder_config(const ConfigReader& reader);

// The shape that can express these options. UserError that names the option in the way.
HuggingFaceDecoderConfig huggingface_config_for(const ModelOptions& model);
// The same for Llama's shape alone, which `format` (its name in the message) is limited to.
HuggingFaceDecoderConfig llama_config_for(const ModelOptions& model, const std::string& format);

std::string to_json_text(const HuggingFaceDecoderConfig& config, SafetensorsType weights, const Tokenizer& tokenizer);

}  // namespace brisk
