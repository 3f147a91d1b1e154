#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "hub/huggingface/image_encoder.h"
#include "hub/model_limits.h"

namespace brisk {

namespace {

using Json = nlohmann::ordered_json;
using namespace model_limits;

constexpr int64_t kLargestImage = 65536, kLargestPatch = 1024;
constexpr const char* kTypes[] = {"vit", "beit", "swin", "donut-swin"};

// A number, or a list of them.
std::vector<int64_t> numbers_or(const ConfigReader& config, const char* key, std::vector<int64_t> otherwise,
                                int64_t most) {
  const Json* value = config.find(key);
  if (value == nullptr) return otherwise;
  std::vector<int64_t> numbers;
  for (const Json& item : value->is_array() ? *value : Json::array({*value})) {
    const bool fits =
        item.is_number_integer() && item.get<double>() >= 1 && item.get<double>() <= static_cast<double>(most);
    config.require(key, fits, fmt::format("integers from 1 to {}", most));
    numbers.push_back(item.get<int64_t>());
  }
  return numbers;
}

void read_sizes(const ConfigReader& config, ModelOptions& model) {
  model.encoder_d_model = config.size_or("hidden_size", 768, kWidest);
  model.encoder_layers = config.size_or("num_hidden_layers", 12, kMostLayers);
  model.encoder_heads = config.size_or("num_attention_heads", 12, kMostHeads);
  model.encoder_d_ff = config.size_or("intermediate_size", 3072, kWidestInside);
}

void read_beit(const ConfigReader& config, ModelOptions& model) {
  const bool absolute = config.boolean_or("use_absolute_position_embeddings", false);
  const bool relative = config.boolean_or("use_relative_position_bias", false);
  const bool shared = config.boolean_or("use_shared_relative_position_bias", false);
  config.require("use_relative_position_bias", !relative || (!absolute && !shared),
                 "false, where there are other positions");
  config.require("use_shared_relative_position_bias", !shared || !absolute, "false, where there are other positions");
  // transformers resizes its tables as if images were square.
  config.require("image_size", model.image_size.front() == model.image_size.back(), "a square");
  model.image_encoder = absolute ? "dit" : "beit";
  model.encoder_positions = absolute ? "learned" : relative ? "relative" : shared ? "shared_relative" : "none";
  model.layer_scale = std::max(0.0, config.number_or("layer_scale_init_value", 0.1, {.above = -1e-300, .most = 1}));
  model.pooling = config.boolean_or("use_mean_pooling", true) ? "mean" : "class";
  model.encoder_final_norm = model.pooling == "class";
}

void read_swin(const ConfigReader& config, ModelOptions& model, bool donut) {
  config.require("use_absolute_embeddings", !config.boolean_or("use_absolute_embeddings", false), "false");
  model.image_encoder = "swin";
  model.encoder_positions = "none";
  model.encoder_d_model = config.size_or("embed_dim", 96, kWidest);
  model.encoder_depths = numbers_or(config, "depths", {2, 2, 6, 2}, kMostLayers);
  model.encoder_stage_heads = numbers_or(config, "num_heads", {3, 6, 12, 24}, kMostHeads);
  config.require("num_heads",
                 model.encoder_stage_heads.size() == model.encoder_depths.size() && model.encoder_depths.size() <= 16,
                 "a number for each stage, of at most 16");
  model.mlp_ratio = config.number_or("mlp_ratio", 4, {.above = 0, .most = 64});
  model.window_size = config.size_or("window_size", 7, kLargestPatch);
  model.encoder_final_norm = !donut;
  model.pooling = "mean";
}

}  // namespace

bool is_image_encoder_type(const std::string& model_type) {
  return model_type == "deit" || std::find(std::begin(kTypes), std::end(kTypes), model_type) != std::end(kTypes);
}

void read_image_encoder_config(const ConfigReader& config, ModelOptions& model) {
  const std::string type = config.text_or("model_type", "");
  config.require("model_type", is_image_encoder_type(type) && type != "deit",
                 "vit, beit, swin or donut-swin (a DeiT has a second special row, which brisk does not read)");
  const bool swin = type.ends_with("swin");
  model.image_size = numbers_or(config, "image_size", {224}, kLargestImage);
  config.require("image_size", !model.image_size.empty() && model.image_size.size() <= 2,
                 "one number, or a height and a width");
  const std::vector<int64_t> patch = numbers_or(config, "patch_size", {swin ? 4 : 16}, kLargestPatch);
  config.require("patch_size", !patch.empty() && patch.front() == patch.back(), "squares");
  model.patch_size = patch.front();
  config.require("num_channels", config.size_or("num_channels", 3, kLargestPatch) == 3, "3, of colour images");
  const std::string activation = config.text_or("hidden_act", "gelu");
  config.require("hidden_act", activation == "gelu" || activation == "gelu_python", "gelu");
  model.encoder_norm_epsilon =
      config.number_or("layer_norm_eps", swin ? 1e-5 : 1e-12, {.above = 0, .most = kLargestEpsilon});
  model.qkv_bias = config.boolean_or("qkv_bias", true);
  model.layer_scale = 0;
  if (swin) return read_swin(config, model, type == "donut-swin");
  read_sizes(config, model);
  if (type == "beit") return read_beit(config, model);
  model.image_encoder = "vit";
  model.encoder_positions = "learned";
  model.encoder_final_norm = true;
  model.pooling = "class";
}

Json image_encoder_json(const ModelOptions& model) {
  const bool alone = model.is_encoder(), swin = model.image_encoder == "swin", vit = model.image_encoder == "vit";
  Json json;
  json["model_type"] = swin ? (model.encoder_final_norm ? "swin" : "donut-swin") : vit ? "vit" : "beit";
  if (model.image_size.size() == 2 && model.image_size.front() != model.image_size.back()) {
    if (!swin && !vit) user_error("model.image_size: Hugging Face's BEiT reads square images");
    json["image_size"] = model.image_size;
  } else {
    json["image_size"] = model.image_size.empty() ? 224 : model.image_size.front();
  }
  json["patch_size"] = model.patch_size;
  json["num_channels"] = 3;
  json["hidden_act"] = "gelu";
  json["layer_norm_eps"] = model.encoder_norm_epsilon;
  json["qkv_bias"] = model.qkv_bias;
  json["hidden_dropout_prob"] = alone ? model.dropout : 0.0;
  json["attention_probs_dropout_prob"] = alone ? std::max(0.0, model.attention_dropout) : 0.0;
  json["drop_path_rate"] = 0.0;
  const int64_t width = alone ? model.d_model : model.encoder_d_model;
  if (swin) {
    json["embed_dim"] = width;
    json["depths"] = model.encoder_depths;
    json["num_heads"] = model.encoder_stage_heads;
    json["num_layers"] = model.encoder_depths.size();
    json["hidden_size"] = width << (model.encoder_depths.size() - 1);
    json["mlp_ratio"] = model.mlp_ratio;
    json["window_size"] = model.window_size;
    json["use_absolute_embeddings"] = false;
    return json;
  }
  json["hidden_size"] = width;
  json["num_hidden_layers"] = alone ? model.num_layers : model.encoder_layers;
  json["num_attention_heads"] = alone ? model.num_heads : model.encoder_heads;
  json["intermediate_size"] = alone ? model.d_ff : model.encoder_d_ff;
  const bool mean = model.pooling == "mean";
  if (vit) {
    if (!model.encoder_final_norm || model.encoder_positions != "learned" || model.layer_scale > 0 || (alone && mean)) {
      user_error(
          "model.image_encoder = vit: Hugging Face's has learned positions, a final norm and no factors (layer_scale), and "
          "classifies by the class token");
    }
    return json;
  }
  if (!model.qkv_bias) user_error("model.qkv_bias = false: Hugging Face's BEiT has biases of queries and values");
  if (alone && mean == model.encoder_final_norm) {
    user_error(
        "model.pooling = {}, model.encoder_final_norm = {}: Hugging Face's BEiT has a final norm exactly where it reads the "
        "class token",
        model.pooling, model.encoder_final_norm);
  }
  json["use_absolute_position_embeddings"] = model.encoder_positions == "learned";
  json["use_relative_position_bias"] = model.encoder_positions == "relative";
  json["use_shared_relative_position_bias"] = model.encoder_positions == "shared_relative";
  json["use_mean_pooling"] = !model.encoder_final_norm;
  json["use_mask_token"] = false;
  json["layer_scale_init_value"] = model.layer_scale;
  return json;
}

}  // namespace brisk
