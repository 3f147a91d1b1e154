// The config.json of Hugging Face encoders (BERT, also MiniLM and BERT-large, DistilBERT, RoBERTa), converted to and from
// brisk's model options.
//
//   if (is_huggingface_encoder(folder)) {
//     const HuggingFaceEncoderConfig config = read_encoder_config(folder);      // UserError if unsupported
//     job.model = config.model;
//
//   write_file_atomically(folder + "/config.json", to_json_text(config, SafetensorsType::f32, *tokenizer));
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hub/formats/safetensors.h"
#include "hub/huggingface/config_reader.h"
#include "job/job.h"
#include "text/tokenizer.h"

namespace brisk {

// Rows of RoBERTa's position table that no text uses: its positions count from the padding's id and one.
constexpr int64_t kRobertaPositionOffset = 2;

struct HuggingFaceEncoderConfig {
  ModelOptions model;  // every key of an encoder; num_labels is 0 if there is no classifier
  // What stands on the encoder, as `architectures` says. `other`: something that brisk does not support, such as token classification.
  enum class Head : uint8_t { unsaid, none, classifier, masked_words, other } head = Head::unsaid;
  std::vector<std::string> labels;  // of a classifier, by number
  // single_label_classification, multi_label_classification, regression, or nothing
  std::string problem_type;
};

// Whether its classifier answers with one class of several. (transformers takes one output for a regression.)
bool serves_problem(const HuggingFaceEncoderConfig& config);
// UserError unless it does.
void check_problem(const HuggingFaceEncoderConfig& config, const std::string& path);

// `folder` holds a config.json whose model_type is bert, distilbert or roberta.
bool is_huggingface_encoder(const std::string& folder);

// UserError where the file is missing or damaged, or asks for what brisk does not compute.
HuggingFaceEncoderConfig read_encoder_config(const std::string& folder);
HuggingFaceEncoderConfig read_encoder_config(const ConfigReader& reader);

// UserError if masked words would be found with another activation than here: RoBERTa's own head knows gelu_erf
// alone.
void check_activation_of_head(const HuggingFaceEncoderConfig& config);

// UserError if Hugging Face's model of this type cannot have these options.
std::string to_json_text(const HuggingFaceEncoderConfig& config, SafetensorsType weights, const Tokenizer& tokenizer);

}  // namespace brisk
