// The config.json of Hugging Face decoders (GPT-2, Llama, Mistral), converted to and from brisk's model options.
//
//   const HuggingFaceConfig config = read_huggingface_config("gpt2");   // the folder; UserError if unsupported
//   job.model = config.model;
//
//   const HuggingFaceConfig config = huggingface_config_for(job.model); // UserError if neither shape has these options
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

struct HuggingFaceConfig {
  enum class Shape : uint8_t { gpt2, llama } shape = Shape::gpt2;
  ModelOptions model;           // `context` included
  bool attention_bias = false;  // of llama: which of its products have biases
  bool feed_forward_bias = false;
};

// `folder` holds a config.json. UserError where the file is missing or damaged, and for an architecture, or a feature
// of one, that brisk does not support: the message names what was found and what is supported.
HuggingFaceConfig read_huggingface_config(const std::string& folder);
HuggingFaceConfig read_huggingface_config(const ConfigReader& reader);

// The shape that can express these options. UserError that names the option in the way.
HuggingFaceConfig huggingface_config_for(const ModelOptions& model);
// The same for Llama's shape alone, which `format` (its name in the message) is limited to.
HuggingFaceConfig llama_config_for(const ModelOptions& model, const std::string& format);

std::string to_json_text(const HuggingFaceConfig& config, SafetensorsType weights, const Tokenizer& tokenizer);

}  // namespace brisk
