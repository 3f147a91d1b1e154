#include "hub/huggingface/decoder_config.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text/printable.h"
#include "hub/huggingface/config_reader.h"
#include "hub/model_limits.h"

namespace brisk {

namespace {

using Json = nlohmann::ordered_json;
using Shape = HuggingFaceDecoderConfig::Shape;
using namespace model_limits;

constexpr ConfigReader::Range kEpsilon = {.above = 0, .most = kLargestEpsilon};
constexpr ConfigReader::Range kRopeTheta = {.above = kLeastRopeTheta, .most = 1e30};

constexpr const char* kSupported = "gpt2, llama and mistral, and of encoders bert, distilbert and roberta";

std::string activation_from(const ConfigReader& reader, const std::string& word) {
  if (word == "gelu_new" || word == "gelu_pytorch_tanh" || word == "gelu_fast") return "gelu";
  if (word == "gelu") return "gelu_erf";
  if (word == "relu") return "relu";
  reader.require("activation_function", false, "gelu_new, gelu or relu");
  return "";
}

HuggingFaceDecoderConfig read_gpt2(const ConfigReader& reader) {
  HuggingFaceDecoderConfig config;
  config.shape = Shape::gpt2;
  ModelOptions& model = config.model;
  model.d_model = reader.size("n_embd", kWidest);
  model.num_layers = reader.size("n_layer", kMostLayers);
  model.num_heads = model.num_kv_heads = reader.size("n_head", kMostHeads);
  model.d_ff = reader.size_or("n_inner", 4 * model.d_model, kWidestInside);
  model.vocab_size = reader.size("vocab_size", kLargestVocabulary);
  model.context = reader.size_or("n_positions", 1024, kLongestContext);
  model.norm = "layernorm";
  model.norm_epsilon = reader.number_or("layer_norm_epsilon", 1e-5, kEpsilon);
  model.activation = activation_from(reader, reader.text_or("activation_function", "gelu_new"));
  model.positions = "learned";
  model.bias = true;
  model.tie_embeddings = reader.boolean_or("tie_word_embeddings", true);
  // Of training that brisk decides itself: read to see that the file is whole.
  for (const char* key : {"embd_pdrop", "attn_pdrop", "resid_pdrop"}) reader.share_or(key, 0);
  reader.require("scale_attn_weights", reader.boolean_or("scale_attn_weights", true), "true");
  reader.require("scale_attn_by_inverse_layer_idx", !reader.boolean_or("scale_attn_by_inverse_layer_idx", false),
                 "false");
  return config;
}

double rope_theta_of(const ConfigReader& reader) {
  constexpr double kUsual = 10000;
  const double theta = reader.number_or("rope_theta", kUsual, kRopeTheta);
  // transformers 5 writes rope_parameters, earlier ones rope_theta and rope_scaling.
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    const Json* rope = reader.find(key);
    if (rope == nullptr) continue;
    const bool plain =
        rope->is_object() && reader.text_in(*rope, "rope_type", reader.text_in(*rope, "type", "default")) == "default";
    reader.require(key, plain, "rotary positions without scaling (rope_type default)");
    if (!rope->contains("rope_theta")) continue;
    const double inside = reader.number_in(*rope, "rope_theta", kUsual, kRopeTheta);
    reader.require("rope_theta", reader.find("rope_theta") == nullptr || inside == theta,
                   fmt::format("the same as in {}, {:g}", key, inside));
    return inside;
  }
  return theta;
}

HuggingFaceDecoderConfig read_llama(const ConfigReader& reader) {
  HuggingFaceDecoderConfig config;
  config.shape = Shape::llama;
  ModelOptions& model = config.model;
  model.d_model = reader.size("hidden_size", kWidest);
  model.num_layers = reader.size("num_hidden_layers", kMostLayers);
  model.num_heads = reader.size("num_attention_heads", kMostHeads);
  model.num_kv_heads = reader.size_or("num_key_value_heads", model.num_heads, kMostHeads);
  model.d_ff = reader.size("intermediate_size", kWidestInside);
  model.vocab_size = reader.size("vocab_size", kLargestVocabulary);
  model.context = reader.size_or("max_position_embeddings", 2048, kLongestContext);
  model.norm = "rmsnorm";
  model.norm_epsilon = reader.number_or("rms_norm_eps", 1e-6, kEpsilon);
  model.activation = "swiglu";
  reader.require("hidden_act", reader.text_or("hidden_act", "silu") == "silu", "silu");
  model.positions = "rotary";
  model.rope_theta = rope_theta_of(reader);
  config.attention_bias = reader.boolean_or("attention_bias", false);
  config.feed_forward_bias = reader.boolean_or("mlp_bias", false);
  model.bias = config.attention_bias || config.feed_forward_bias;
  model.tie_embeddings = reader.boolean_or("tie_word_embeddings", false);
  reader.share_or("attention_dropout", 0);
  const int64_t head_width = reader.size_or("head_dim", model.d_model / model.num_heads, kWidest);
  reader.require("head_dim", head_width * model.num_heads == model.d_model,
                 fmt::format("hidden_size / num_attention_heads = {} / {}", model.d_model, model.num_heads));
  reader.require("partial_rotary_factor", reader.number_or("partial_rotary_factor", 1, {.above = 0, .most = 1}) == 1,
                 "1");
  reader.require("sliding_window", reader.size_or("sliding_window", model.context, kLongestContext) >= model.context,
                 "attention to the whole text (null)");
  return config;
}

// What GPT-2's shape lacks; empty if nothing is in the way.
std::string beyond_gpt2(const ModelOptions& model) {
  if (model.norm != "layernorm") return fmt::format("model.norm = {} (it has layernorm)", model.norm);
  if (model.activation == "swiglu") return "model.activation = swiglu (it has gelu, gelu_erf or relu)";
  if (model.positions == "rotary") return "model.positions = rotary (it has learned positions)";
  if (model.num_kv_heads != model.num_heads) {
    return fmt::format("model.num_kv_heads = {} (it has as many as heads, {})", model.num_kv_heads, model.num_heads);
  }
  return "";
}

std::string beyond_llama(const ModelOptions& model) {
  if (model.norm != "rmsnorm") return fmt::format("model.norm = {} (it has rmsnorm)", model.norm);
  if (model.activation != "swiglu") return fmt::format("model.activation = {} (it has swiglu)", model.activation);
  if (model.positions != "rotary") {
    return fmt::format("model.positions = {} (it has rotary positions)", model.positions);
  }
  return "";
}

HuggingFaceDecoderConfig config_of(Shape shape, const ModelOptions& model) {
  HuggingFaceDecoderConfig config;
  config.shape = shape;
  config.model = model;
  config.attention_bias = config.feed_forward_bias = model.bias;
  return config;
}

void check_heads(const HuggingFaceDecoderConfig& config, const std::string& path) {
  const ModelOptions& model = config.model;
  const bool even = config.shape == Shape::gpt2 || model.d_model / model.num_heads % 2 == 0;
  if (model.d_model % model.num_heads == 0 && model.num_heads % model.num_kv_heads == 0 && even) return;
  user_error("{}: a width of {} in {} heads and {} key/value heads: expected heads of equal{} width, in equal groups",
             path, model.d_model, model.num_heads, model.num_kv_heads, even ? "" : " and even");
}

}  // namespace

HuggingFaceDecoderConfig read_decoder_config(const std::string& folder) {
  return read_decoder_config(ConfigReader(folder + "/config.json"));
}

HuggingFaceDecoderConfig read_decoder_config(const ConfigReader& reader) {
  const std::string type = reader.text_or("model_type", "");
  if (type != "gpt2" && type != "llama" && type != "mistral") {
    user_error("{}: model_type is {}, which brisk does not support; it supports {}", reader.path(),
               type.empty() ? "missing" : in_quotes(type), kSupported);
  }
  const HuggingFaceDecoderConfig config = type == "gpt2" ? read_gpt2(reader) : read_llama(reader);
  check_heads(config, reader.path());
  return config;
}

HuggingFaceDecoderConfig huggingface_config_for(const ModelOptions& model) {
  const std::string gpt2 = beyond_gpt2(model), llama = beyond_llama(model);
  if (gpt2.empty()) return config_of(Shape::gpt2, model);
  if (llama.empty()) return config_of(Shape::llama, model);
  user_error(
      "this model is neither of GPT-2's shape nor of Llama's, the two that brisk writes for Hugging Face: GPT-2's has "
      "no {}, Llama's no {}",
      gpt2, llama);
}

HuggingFaceDecoderConfig llama_config_for(const ModelOptions& model, const std::string& format) {
  const std::string llama = beyond_llama(model);
  if (llama.empty()) return config_of(Shape::llama, model);
  const std::string gpt2 = beyond_gpt2(model);
  user_error("brisk writes {} only for Llama's shape, which has no {}; {}", format, llama,
             gpt2.empty() ? "--format huggingface also has GPT-2's shape"
                          : fmt::format("--format huggingface would not help: GPT-2's shape has no {}", gpt2));
}

std::string to_json_text(const HuggingFaceDecoderConfig& config, SafetensorsType weights, const Tokenizer& tokenizer) {
  const ModelOptions& model = config.model;
  Json json;
  const bool gpt2 = config.shape == Shape::gpt2;
  json["architectures"] = {gpt2 ? "GPT2LMHeadModel" : "LlamaForCausalLM"};
  json["model_type"] = gpt2 ? "gpt2" : "llama";
  json["vocab_size"] = model.vocab_size;
  if (gpt2) {
    json["n_embd"] = model.d_model;
    json["n_layer"] = model.num_layers;
    json["n_head"] = model.num_heads;
    json["n_inner"] = model.d_ff;
    json["n_positions"] = model.context;
    json["activation_function"] = model.activation == "gelu"       ? "gelu_new"
                                  : model.activation == "gelu_erf" ? "gelu"
                                                                   : model.activation;
    json["layer_norm_epsilon"] = model.norm_epsilon;
    for (const char* key : {"embd_pdrop", "attn_pdrop", "resid_pdrop"}) json[key] = model.dropout;
  } else {
    json["hidden_size"] = model.d_model;
    json["num_hidden_layers"] = model.num_layers;
    json["num_attention_heads"] = model.num_heads;
    json["num_key_value_heads"] = model.num_kv_heads;
    json["head_dim"] = model.d_model / model.num_heads;
    json["intermediate_size"] = model.d_ff;
    json["max_position_embeddings"] = model.context;
    json["hidden_act"] = "silu";
    json["rms_norm_eps"] = model.norm_epsilon;
    json["rope_theta"] = model.rope_theta;  // of transformers 4; rope_parameters of transformers 5
    json["rope_parameters"] = {{"rope_type", "default"}, {"rope_theta", model.rope_theta}};
    json["attention_bias"] = config.attention_bias;
    json["mlp_bias"] = config.feed_forward_bias;
    json["attention_dropout"] = model.dropout;
  }
  json["tie_word_embeddings"] = model.tie_embeddings;
  // A text begins after the end-of-document token in brisk, so that token stands for both.
  const std::optional<TokenId> end = tokenizer.end_of_document();
  const std::optional<TokenId> start = tokenizer.start_of_text() ? tokenizer.start_of_text() : end;
  json["bos_token_id"] = start ? Json(*start) : Json(nullptr);
  json["eos_token_id"] = end ? Json(*end) : Json(nullptr);
  json["torch_dtype"] = weights == SafetensorsType::f32    ? "float32"
                        : weights == SafetensorsType::bf16 ? "bfloat16"
                                                           : "float16";
  return json.dump(2) + "\n";
}

}  // namespace brisk
