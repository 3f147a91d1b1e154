#include "hub/huggingface/decoder.h"

#include <cstring>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/files.h"
#include "base/files/unfinished_folder.h"
#include "base/parse_json.h"
#include "hub/formats/weight_files.h"

namespace brisk {

namespace {

using Json = nlohmann::ordered_json;
using Shape = HuggingFaceDecoderConfig::Shape;

WeightPart vector_part(std::string name, int64_t length) {
  return {.name = std::move(name), .outputs = length, .inputs = 0};
}
WeightPart matrix_part(std::string name, int64_t outputs, int64_t inputs) {
  return {.name = std::move(name), .outputs = outputs, .inputs = inputs};
}

std::vector<WeightMap> gpt2_map(const HuggingFaceDecoderConfig& config, const std::string& prefix) {
  const ModelOptions& model = config.model;
  const int64_t D = model.d_model, F = model.d_ff, V = model.vocab_size;
  std::vector<WeightMap> map;
  const auto vector = [&](const std::string& ours, const std::string& theirs, int64_t length) {
    map.push_back({ours, {vector_part(prefix + theirs, length)}});
  };
  const auto conv = [&](const std::string& ours, const std::string& theirs, int64_t outputs, int64_t inputs) {
    WeightPart part = matrix_part(prefix + theirs + ".weight", outputs, inputs);
    part.transposed = true;
    map.push_back({ours + ".weight", {part}});
    vector(ours + ".bias", theirs + ".bias", outputs);
  };
  const auto norm = [&](const std::string& ours, const std::string& theirs) {
    vector(ours + ".gain", theirs + ".weight", D);
    vector(ours + ".bias", theirs + ".bias", D);
  };
  map.push_back({"embedding.weight", {matrix_part(prefix + "wte.weight", V, D)}});
  map.push_back({"positions.weight", {matrix_part(prefix + "wpe.weight", model.context, D)}});
  for (int64_t l = 0; l < model.num_layers; ++l) {
    const std::string ours = fmt::format("layers.{}.", l), theirs = fmt::format("h.{}.", l);
    norm(ours + "attention_norm", theirs + "ln_1");
    conv(ours + "qkv", theirs + "attn.c_attn", 3 * D, D);
    conv(ours + "attention_out", theirs + "attn.c_proj", D, D);
    norm(ours + "feed_forward_norm", theirs + "ln_2");
    conv(ours + "up", theirs + "mlp.c_fc", F, D);
    conv(ours + "down", theirs + "mlp.c_proj", D, F);
  }
  norm("final_norm", "ln_f");
  if (!model.tie_embeddings) map.push_back({"head.weight", {matrix_part("lm_head.weight", V, D)}});
  return map;
}

std::vector<WeightMap> llama_map(const HuggingFaceDecoderConfig& config, const std::string& prefix) {
  const ModelOptions& model = config.model;
  const int64_t D = model.d_model, F = model.d_ff, V = model.vocab_size, K = D / model.num_heads;
  const int64_t queries = model.num_heads * K, keys = model.num_kv_heads * K;
  std::vector<WeightMap> map;
  const auto gain = [&](const std::string& ours, const std::string& theirs) {
    map.push_back({ours + ".gain", {vector_part(prefix + theirs + ".weight", D)}});
  };
  struct Product {
    std::string name;
    int64_t outputs;
    bool rotates = false;
  };
  const auto linear = [&](const std::string& ours, const std::vector<Product>& products, int64_t inputs, bool biased) {
    WeightMap weight{ours + ".weight", {}}, bias{ours + ".bias", {}};
    for (const Product& product : products) {
      WeightPart part = matrix_part(prefix + product.name + ".weight", product.outputs, inputs);
      if (product.rotates) part.split_head_width = K;
      weight.parts.push_back(part);
      part.inputs = 0;
      part.name = biased ? prefix + product.name + ".bias" : "";
      bias.parts.push_back(part);
    }
    map.push_back(std::move(weight));
    if (model.bias) map.push_back(std::move(bias));
  };
  map.push_back({"embedding.weight", {matrix_part(prefix + "embed_tokens.weight", V, D)}});
  for (int64_t l = 0; l < model.num_layers; ++l) {
    const std::string ours = fmt::format("layers.{}.", l), theirs = ours;
    gain(ours + "attention_norm", theirs + "input_layernorm");
    linear(ours + "qkv",
           {{theirs + "self_attn.q_proj", queries, true},
            {theirs + "self_attn.k_proj", keys, true},
            {theirs + "self_attn.v_proj", keys}},
           D, config.attention_bias);
    linear(ours + "attention_out", {{theirs + "self_attn.o_proj", D}}, queries, config.attention_bias);
    gain(ours + "feed_forward_norm", theirs + "post_attention_layernorm");
    linear(ours + "up", {{theirs + "mlp.gate_proj", F}, {theirs + "mlp.up_proj", F}}, D, config.feed_forward_bias);
    linear(ours + "down", {{theirs + "mlp.down_proj", D}}, F, config.feed_forward_bias);
  }
  gain("final_norm", "norm");
  if (!model.tie_embeddings) map.push_back({"head.weight", {matrix_part("lm_head.weight", V, D)}});
  return map;
}

const char* token_table(Shape shape) { return shape == Shape::gpt2 ? "wte.weight" : "embed_tokens.weight"; }

}  // namespace

bool is_huggingface_folder(const std::string& path) { return is_directory(path) && file_exists(path + "/config.json"); }

HuggingFaceDecoder::HuggingFaceDecoder(const std::string& folder)
    : path_(folder), config_(read_decoder_config(folder)), files_(folder) {}

std::string HuggingFaceDecoder::prefix() const {
  const std::string usual = config_.shape == Shape::gpt2 ? "transformer." : "model.";
  const std::string table = token_table(config_.shape);
  // The original GPT-2 was saved without its head, and so without the prefix.
  return find(usual + table) == nullptr && find(table) != nullptr ? "" : usual;
}

WeightSource HuggingFaceDecoder::source(NonFinite nonfinite) const {
  return {path_, [this](const std::string& name) { return find(name); }, nonfinite};
}

void HuggingFaceDecoder::check() const {
  check_layers(files_.names(), prefix() + (config_.shape == Shape::gpt2 ? "h." : "layers."), config_.model.num_layers,
               path_);
  check_weights(huggingface_weight_map(config_, prefix()), source(NonFinite::refuse));
}

void HuggingFaceDecoder::load_into(ParameterStore& store, NonFinite nonfinite) const {
  files_.advise_sequential();
  files_.check_bytes();
  const SafetensorsEntry* table = find(prefix() + token_table(config_.shape));
  const SafetensorsEntry* head = find("lm_head.weight");
  if (config_.model.tie_embeddings && table != nullptr && head != nullptr) {
    if (table->bytes != head->bytes || std::memcmp(table->data, head->data, static_cast<size_t>(table->bytes)) != 0) {
      user_error(
          "{}: tie_word_embeddings is true, but lm_head.weight is not the token embedding; set it to false in "
          "config.json, or fetch the folder again",
          path_);
    }
  }
  load_weights(huggingface_weight_map(config_, prefix()), source(nonfinite), store);
}

std::vector<WeightMap> huggingface_weight_map(const HuggingFaceDecoderConfig& config, const std::string& prefix) {
  return config.shape == Shape::gpt2 ? gpt2_map(config, prefix) : llama_map(config, prefix);
}

void write_huggingface(const std::string& folder, const ModelOptions& model, const ParameterStore& store,
                       const Tokenizer& tokenizer, SafetensorsType type, int64_t max_length) {
  const HuggingFaceDecoderConfig config = huggingface_config_for(model);
  const bool holds_files = file_exists(folder + "/config.json") || file_exists(folder + "/" + kWeightsFile);
  if (holds_files && !UnfinishedFolder::is(folder)) {
    user_error("{}: it holds a model already; choose another folder with --output", folder);
  }
  UnfinishedFolder unfinished(folder);
  SafetensorsWriter writer(folder + "/" + kWeightsFile);
  writer.add_metadata("format", "pt");
  const std::string prefix = config.shape == Shape::gpt2 ? "transformer." : "model.";
  for (const WeightMap& entry : huggingface_weight_map(config, prefix)) {
    for (const StoredTensor& tensor : stored_tensors(entry, store, type)) {
      writer.add(tensor.name, tensor.type, tensor.shape, fill_from(tensor));
    }
  }
  writer.finish();
  save_tokenizer_folder(tokenizer, folder, {.max_length = max_length});
  const std::string text = to_json_text(config, type, tokenizer);
  const Json json = parse_own_json(text);
  Json generation;
  for (const char* key : {"bos_token_id", "eos_token_id"}) generation[key] = json.at(key);
  write_file_atomically(folder + "/generation_config.json", generation.dump(2) + "\n");
  write_file_atomically(folder + "/config.json", text);  // last: it makes the folder a model
  unfinished.finish();
}

}  // namespace brisk
