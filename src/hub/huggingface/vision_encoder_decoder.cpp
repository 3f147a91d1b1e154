#include "hub/huggingface/vision_encoder_decoder.h"

#include <cstring>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/files.h"
#include "base/files/unfinished_folder.h"
#include "hub/huggingface/image_encoder.h"
#include "hub/model_limits.h"
#include "image/preprocessor_config.h"

namespace brisk {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kVisionPairType = "vision-encoder-decoder";
constexpr const char* kImageProcessorFile = "/preprocessor_config.json";

// The configuration of one of the two, as a file of its own.
ConfigReader half_of(const ConfigReader& reader, const char* key) {
  const Json* part = reader.find(key);
  if (part == nullptr || !part->is_object()) {
    user_error("{}: it has no {}, an object with the configuration of one; fetch the file again", reader.path(), key);
  }
  return {fmt::format("{} ({})", reader.path(), key), part->dump(-1, ' ', false, Json::error_handler_t::replace)};
}

std::vector<WeightMap> vision_pair_weight_map(const ModelOptions& model, TextDecoderShape shape,
                                              const ParameterStore& store) {
  std::vector<WeightMap> map = image_encoder_weight_map(model.image_encoder, store, "encoder.", "encoder.");
  for (WeightMap& entry : text_decoder_weight_map(shape, store)) map.push_back(std::move(entry));
  return map;
}

bool are_equal(const SafetensorsEntry& one, const SafetensorsEntry& other) {
  return one.bytes == other.bytes &&
         (one.data == other.data || std::memcmp(one.data, other.data, static_cast<size_t>(one.bytes)) == 0);
}

}  // namespace

bool is_huggingface_vision_encoder_decoder(const std::string& folder) {
  const std::string path = folder + "/config.json";
  return is_directory(folder) && file_exists(path) && ConfigReader(path).text_or("model_type", "") == kVisionPairType;
}

HuggingFaceVisionEncoderDecoder::HuggingFaceVisionEncoderDecoder(const std::string& folder)
    : path_(folder), files_(folder) {
  const ConfigReader reader(folder + "/config.json");
  model_.type = "vision_encoder_decoder";
  shape_ = read_text_decoder_config(half_of(reader, "decoder"), model_);
  read_image_encoder_config(half_of(reader, "encoder"), model_);
  model_.pooling = ModelOptions().pooling;  // a classifier's
  if (const Json* first = reader.find("decoder_start_token_id"); first != nullptr && *first != 0) {
    model_.first_token = reader.size("decoder_start_token_id", model_limits::kLargestVocabulary);
  } else if (first != nullptr) {
    model_.first_token = 0;
  }
  reader.require("decoder_start_token_id", model_.first_token < model_.vocab_size,
                 fmt::format("a token of the vocabulary, below {}", model_.vocab_size));
  if (const std::string processor = folder + kImageProcessorFile; file_exists(processor)) {
    model_.image_processor = preprocessor_config_text(read_preprocessor_config(processor));
  }
  const TextDecoderNames names = text_decoder_names(shape_);
  const SafetensorsEntry *head = files_.find(names.head), *table = files_.find(names.table);
  model_.tie_embeddings = head == nullptr || (table != nullptr && are_equal(*head, *table));
}

std::vector<WeightMap> HuggingFaceVisionEncoderDecoder::map(const ParameterStore& store) const {
  std::vector<WeightMap> map = vision_pair_weight_map(model_, shape_, store);
  for (WeightMap& entry : map) {
    if (entry.parameter != "head.bias" || files_.find(entry.parts[0].name) != nullptr) continue;
    // Its other name, which some versions write; or zeros.
    const std::string other = "decoder.cls.predictions.decoder.bias";
    entry.parts[0].name = files_.find(other) != nullptr ? other : "";
  }
  return map;
}

WeightSource HuggingFaceVisionEncoderDecoder::source(NonFinite nonfinite) const {
  return {path_, [this](const std::string& name) { return files_.find(name); }, nonfinite};
}

void HuggingFaceVisionEncoderDecoder::check(const ParameterStore& store) const {
  check_layers(files_.names(), text_decoder_names(shape_).layers, model_.num_layers, path_);
  check_weights(map(store), source(NonFinite::refuse));
}

void HuggingFaceVisionEncoderDecoder::load_into(ParameterStore& store, NonFinite nonfinite) const {
  files_.advise_sequential();
  files_.check_bytes();
  load_weights(map(store), source(nonfinite), store);
}

void check_huggingface_vision_encoder_decoder(const ModelOptions& model) {
  text_decoder_shape_for(model);
  image_encoder_json(model);
}

void write_huggingface_vision_encoder_decoder(const std::string& folder, const ModelOptions& model,
                                              const ParameterStore& store, const Tokenizer& tokenizer,
                                              SafetensorsType type, int64_t max_length) {
  const TextDecoderShape shape = text_decoder_shape_for(model);
  const bool holds_files = file_exists(folder + "/config.json") || file_exists(folder + "/" + kWeightsFile);
  if (holds_files && !UnfinishedFolder::is(folder)) {
    user_error("{}: it holds a model already; choose another folder with --output", folder);
  }
  WrittenTokens tokens = written_tokens(tokenizer);
  if (model.first_token >= 0) tokens.start = static_cast<TokenId>(model.first_token);
  Json json;
  json["architectures"] = {"VisionEncoderDecoderModel"};
  json["model_type"] = kVisionPairType;
  json["encoder"] = image_encoder_json(model);
  json["decoder"] = text_decoder_json(shape, model, tokens);
  json["is_encoder_decoder"] = true;
  json["tie_word_embeddings"] = false;
  Json generation;
  const std::pair<const char*, TokenId> special[] = {
      {"decoder_start_token_id", tokens.start}, {"eos_token_id", tokens.end}, {"pad_token_id", tokens.padding}};
  for (const auto& [key, token] : special) json[key] = generation[key] = token;

  UnfinishedFolder unfinished(folder);
  SafetensorsWriter writer(folder + "/" + kWeightsFile);
  writer.add_metadata("format", "pt");
  for (const WeightMap& entry : vision_pair_weight_map(model, shape, store)) {
    for (const StoredTensor& tensor : stored_tensors(entry, store, type)) {
      writer.add(tensor.name, tensor.type, tensor.shape, fill_from(tensor));
    }
  }
  writer.finish();
  save_tokenizer_folder(tokenizer, folder, {.token_types = false, .max_length = max_length});
  write_file_atomically(folder + kImageProcessorFile, model.image_processor);
  write_file_atomically(folder + "/generation_config.json", generation.dump(2) + "\n");
  write_file_atomically(folder + "/config.json", json.dump(2) + "\n");  // last: it makes the folder a model
  unfinished.finish();
}

}  // namespace brisk
