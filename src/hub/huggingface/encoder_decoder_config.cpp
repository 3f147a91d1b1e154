#include "hub/huggingface/encoder_decoder_config.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/files.h"
#include "base/text/printable.h"
#include "hub/model_limits.h"

namespace brisk {

namespace {

using Json = nlohmann::ordered_json;
using PairShape = HuggingFaceEncoderDecoderConfig::Shape;
using namespace model_limits;

constexpr int64_t kBartPositionOffset = 2;
constexpr double kLayerNormEpsilon = 1e-5;  // of Marian's and BART's code; in none of their files
constexpr int64_t kT5Length = 512;          // of what T5 was trained with: it has no table of positions
constexpr int64_t kLeastBuckets = 4, kMostBuckets = 256, kFarthest = 1 << 20;

struct PairShapeName {
  const char* type;
  PairShape shape;
};
constexpr PairShapeName kPairShapes[] = {{"marian", PairShape::marian},
                                         {"pegasus", PairShape::pegasus},
                                         {"bart", PairShape::bart},
                                         {"mbart", PairShape::mbart},
                                         {"t5", PairShape::t5},
                                         {"mt5", PairShape::t5},
                                         {"encoder-decoder", PairShape::two_berts}};

bool has_sinusoids(PairShape shape) { return shape == PairShape::marian || shape == PairShape::pegasus; }
bool has_norms_before(PairShape shape) {
  return shape == PairShape::pegasus || shape == PairShape::mbart || shape == PairShape::t5;
}

struct ActivationNames {
  const char *there, *here;
};
constexpr ActivationNames kBartActivations[] = {
    {"relu", "relu"},      {"gelu", "gelu_erf"},          {"gelu_python", "gelu_erf"}, {"gelu_new", "gelu"},
    {"gelu_fast", "gelu"}, {"gelu_pytorch_tanh", "gelu"}, {"swish", "swish"},          {"silu", "swish"}};
constexpr ActivationNames kT5Activations[] = {
    {"relu", "relu"}, {"gelu", "gelu_erf"}, {"gelu_new", "gelu"}, {"gated-gelu", "geglu"}, {"gated-silu", "swiglu"}};

template <size_t kCount>
std::string read_activation(const ConfigReader& reader, const char* key, const ActivationNames (&all)[kCount],
                            const char* usual) {
  const std::string word = reader.text_or(key, usual);
  std::string known;
  for (const ActivationNames& words : all) {
    if (word == words.there) return words.here;
    known += (known.empty() ? "" : ", ") + std::string(words.there);
  }
  reader.require(key, false, known);
  return "";
}

template <size_t kCount>
const char* activation_name(const std::string& word, const ActivationNames (&all)[kCount]) {
  for (const ActivationNames& words : all) {
    if (word == words.here) return words.there;
  }
  return nullptr;
}

// A setting of old files and other models' that these cannot have.
void refuse(const ConfigReader& reader, const char* key, bool supported) {
  reader.require(key, reader.boolean_or(key, supported) == supported, supported ? "true" : "false");
}

void read_bart(const ConfigReader& reader, PairShape shape, ModelOptions& model) {
  const bool sinusoids = has_sinusoids(shape), before = has_norms_before(shape);
  model.d_model = reader.size("d_model", kWidest);
  model.encoder_d_model = model.d_model;
  model.encoder_layers = reader.size("encoder_layers", kMostLayers);
  model.num_layers = reader.size("decoder_layers", kMostLayers);
  model.encoder_heads = reader.size("encoder_attention_heads", kMostHeads);
  model.num_heads = reader.size("decoder_attention_heads", kMostHeads);
  model.encoder_d_ff = reader.size("encoder_ffn_dim", kWidestInside);
  model.d_ff = reader.size("decoder_ffn_dim", kWidestInside);
  model.activation = read_activation(reader, "activation_function", kBartActivations, "gelu");
  model.context = reader.size_or("max_position_embeddings", 1024, kLongestContext);
  model.scale_embeddings = reader.boolean_or("scale_embedding", false);
  model.dropout = reader.share_or("dropout", 0.1);
  model.attention_dropout = reader.share_or("attention_dropout", 0);
  model.activation_dropout = reader.share_or("activation_dropout", 0);
  model.norm_epsilon = kLayerNormEpsilon;
  model.norm_position = before ? "pre" : "post";
  model.positions = sinusoids ? "sinusoidal" : "learned";
  model.position_offset = sinusoids ? 0 : kBartPositionOffset;
  model.embedding_norm = !sinusoids;
  model.output_bias = "fixed";
  model.share_embeddings = shape != PairShape::marian || reader.boolean_or("share_encoder_decoder_embeddings", true);
  if (!model.share_embeddings) {
    model.source_vocab_size = model.vocab_size;
    model.vocab_size = reader.size_or("decoder_vocab_size", model.vocab_size, kLargestVocabulary);
  }
  refuse(reader, "normalize_before", before);
  refuse(reader, "add_final_layer_norm", before);
  refuse(reader, "normalize_embedding", !sinusoids);
  refuse(reader, "static_position_embeddings", sinusoids);
  refuse(reader, "do_blenderbot_90_layernorm", false);
  refuse(reader, "tie_word_embeddings", true);
  reader.require("extra_pos_embeddings",
                 reader.size_or("extra_pos_embeddings", kBartPositionOffset, kLongestContext) == kBartPositionOffset,
                 "2");
}

void read_t5(const ConfigReader& reader, ModelOptions& model) {
  model.d_model = model.encoder_d_model = reader.size("d_model", kWidest);
  model.encoder_layers = reader.size("num_layers", kMostLayers);
  model.num_layers = reader.size_or("num_decoder_layers", model.encoder_layers, kMostLayers);
  model.num_heads = model.encoder_heads = reader.size("num_heads", kMostHeads);
  model.head_width = reader.size("d_kv", kMostHeads);
  model.d_ff = model.encoder_d_ff = reader.size("d_ff", kWidestInside);
  const bool multilingual = reader.text_or("model_type", "") == "mt5";
  model.activation = read_activation(reader, "feed_forward_proj", kT5Activations, multilingual ? "gated-gelu" : "relu");
  model.relative_buckets = reader.size_or("relative_attention_num_buckets", 32, kMostBuckets);
  reader.require("relative_attention_num_buckets", model.relative_buckets >= kLeastBuckets,
                 fmt::format("{} or more", kLeastBuckets));
  model.relative_distance = reader.size_or("relative_attention_max_distance", 128, kFarthest);
  reader.require("relative_attention_max_distance", model.relative_distance > model.relative_buckets / 2,
                 "more than half of relative_attention_num_buckets");
  model.dropout = model.attention_dropout = model.activation_dropout = model.final_dropout =
      reader.share_or("dropout_rate", 0.1);
  if (model.activation == "geglu" || model.activation == "swiglu") model.activation_dropout = 0;
  model.norm_epsilon = reader.number_or("layer_norm_epsilon", 1e-6, {.above = 0, .most = kLargestEpsilon});
  model.context = reader.size_or("n_positions", kT5Length, kLongestContext);
  model.norm = "rmsnorm";
  model.norm_position = "pre";
  model.positions = "relative";
  model.bias = model.scale_embeddings = model.scale_attention = false;
  // The first T5 scales what its outputs are made of; the later ones do not, and say so by not being tied.
  model.scale_outputs =
      reader.boolean_or("scale_decoder_outputs", reader.boolean_or("tie_word_embeddings", !multilingual));
}

// The configuration of one of the two, as a file of its own.
ConfigReader part_of(const ConfigReader& reader, const char* key) {
  const Json* part = reader.find(key);
  if (part == nullptr || !part->is_object()) {
    user_error("{}: it has no {}, an object with the configuration of one; fetch the file again", reader.path(), key);
  }
  const ConfigReader inner(fmt::format("{} ({})", reader.path(), key),
                           part->dump(-1, ' ', false, Json::error_handler_t::replace));
  inner.require("model_type", inner.text_or("model_type", "") == "bert", "bert");
  inner.require("position_embedding_type", inner.text_or("position_embedding_type", "absolute") == "absolute",
                "absolute");
  return inner;
}

void read_two_berts(const ConfigReader& reader, ModelOptions& model) {
  const ConfigReader encoder = part_of(reader, "encoder"), decoder = part_of(reader, "decoder");
  refuse(decoder, "is_decoder", true);
  refuse(decoder, "add_cross_attention", true);
  refuse(encoder, "is_decoder", false);
  refuse(decoder, "tie_word_embeddings", true);
  refuse(reader, "tie_encoder_decoder", false);
  model.source_vocab_size = encoder.size("vocab_size", kLargestVocabulary);
  model.vocab_size = decoder.size("vocab_size", kLargestVocabulary);
  model.encoder_d_model = encoder.size("hidden_size", kWidest);
  model.d_model = decoder.size("hidden_size", kWidest);
  model.encoder_layers = encoder.size("num_hidden_layers", kMostLayers);
  model.num_layers = decoder.size("num_hidden_layers", kMostLayers);
  model.encoder_heads = encoder.size("num_attention_heads", kMostHeads);
  model.num_heads = decoder.size("num_attention_heads", kMostHeads);
  model.encoder_d_ff = encoder.size("intermediate_size", kWidestInside);
  model.d_ff = decoder.size("intermediate_size", kWidestInside);
  model.source_context = encoder.size_or("max_position_embeddings", 512, kLongestContext);
  model.context = decoder.size_or("max_position_embeddings", 512, kLongestContext);
  model.activation = read_activation(decoder, "hidden_act", kBartActivations, "gelu");
  encoder.require("hidden_act", read_activation(encoder, "hidden_act", kBartActivations, "gelu") == model.activation,
                  "the decoder's, " + decoder.text_or("hidden_act", "gelu"));
  model.norm_epsilon = decoder.number_or("layer_norm_eps", 1e-12, {.above = 0, .most = kLargestEpsilon});
  const double epsilon = encoder.number_or("layer_norm_eps", 1e-12, {.above = 0, .most = kLargestEpsilon});
  encoder.require("layer_norm_eps", epsilon == model.norm_epsilon,
                  fmt::format("the decoder's, {:g}", model.norm_epsilon));
  model.token_types = decoder.size_or("type_vocab_size", 2, kMostTokenTypes);
  encoder.require("type_vocab_size", encoder.size_or("type_vocab_size", 2, kMostTokenTypes) == model.token_types,
                  fmt::format("the decoder's, {}", model.token_types));
  model.dropout = decoder.share_or("hidden_dropout_prob", 0.1);
  model.attention_dropout = decoder.share_or("attention_probs_dropout_prob", 0.1);
  model.norm_position = "post";
  model.positions = "learned";
  model.embedding_norm = model.output_transform = true;
  model.output_bias = "trained";
  model.share_embeddings = model.scale_embeddings = false;
  // transformers has a matrix between two widths unless the decoder's cross-attention reads the encoder's.
  if (decoder.find("cross_attention_hidden_size") != nullptr) {
    const int64_t read = decoder.size("cross_attention_hidden_size", kWidest);
    decoder.require("cross_attention_hidden_size", read == model.encoder_d_model && read == model.d_model,
                    "the width of both models");
  }
}

// The option that keeps the model from being of this shape; empty: none.
std::string in_the_way(const ModelOptions& model, PairShape shape) {
  const auto unless = [](bool fits, std::string option) { return fits ? "" : std::move(option); };
  const bool t5 = shape == PairShape::t5, berts = shape == PairShape::two_berts;
  const bool table = shape == PairShape::bart || shape == PairShape::mbart;
  const bool equal_contexts = model.source_context == 0 || model.source_context == model.context;
  const bool own_width = model.head_width > 0 && model.head_width * model.num_heads != model.d_model;
  const char* positions = t5 ? "relative" : has_sinusoids(shape) ? "sinusoidal" : "learned";
  const std::string reasons[] = {
      unless(model.positions == positions, "positions " + model.positions),
      unless(model.norm_position == (has_norms_before(shape) ? "pre" : "post"), "norm_position " + model.norm_position),
      unless(model.norm == (t5 ? "rmsnorm" : "layernorm"), "norm " + model.norm),
      unless(model.bias == !t5, model.bias ? "bias" : "layers without bias"),
      unless(model.embedding_norm == (table || berts),
             model.embedding_norm ? "embedding_norm" : "unnormalized embeddings"),
      unless((t5 ? activation_name(model.activation, kT5Activations)
                 : activation_name(model.activation, kBartActivations)) != nullptr,
             "activation " + model.activation),
      unless(!berts || model.activation != "swish", "activation swish"),
      unless(model.scale_attention == !t5, "scale_attention " + std::string(model.scale_attention ? "true" : "false")),
      unless(t5 || !model.scale_outputs, "scale_outputs"),
      unless(!model.scale_embeddings || (!t5 && !berts), "scale_embeddings"),
      unless(model.share_embeddings || shape == PairShape::marian || berts, "separate embeddings of source and target"),
      unless(!model.share_embeddings || !berts, "shared embeddings"),
      unless(model.tie_embeddings || t5, "untied output projection"),
      unless(t5 || !own_width, fmt::format("head_width {}", model.head_width)),
      unless(model.output_transform == berts, berts ? "outputs without output_transform" : "output_transform"),
      unless(!t5 || model.output_bias == "none", "output_bias"),
      unless(model.position_offset == (table ? kBartPositionOffset : 0) || has_sinusoids(shape) || t5,
             fmt::format("position_offset {}", model.position_offset)),
      unless(!table || equal_contexts, "source_context other than context"),
      unless(berts || (model.encoder_d_model == 0 || model.encoder_d_model == model.d_model), "encoder_d_model"),
      unless(!t5 || model.encoder_heads == 0 || model.encoder_heads == model.num_heads, "encoder_heads"),
      unless(!t5 || model.encoder_d_ff == 0 || model.encoder_d_ff == model.d_ff, "encoder_d_ff"),
      unless((model.token_types > 0) == berts, berts ? "tables without token_types" : "token_types"),
      unless(t5 || berts || model.norm_epsilon == kLayerNormEpsilon,
             fmt::format("norm_epsilon {:g}", model.norm_epsilon))};
  for (const std::string& reason : reasons) {
    if (!reason.empty()) return reason;
  }
  return "";
}

const char* number_format(SafetensorsType type) {
  return type == SafetensorsType::f32 ? "float32" : type == SafetensorsType::bf16 ? "bfloat16" : "float16";
}

Json bert_json(const ModelOptions& model, bool decodes, const WrittenTokens& tokens) {
  Json json;
  json["architectures"] = {decodes ? "BertLMHeadModel" : "BertModel"};
  json["model_type"] = "bert";
  json["vocab_size"] = decodes ? model.vocab_size : model.source_vocab_size;
  json["hidden_size"] = decodes ? model.d_model : model.encoder_d_model;
  json["num_hidden_layers"] = decodes ? model.num_layers : model.encoder_layers;
  json["num_attention_heads"] = decodes ? model.num_heads : model.encoder_heads;
  json["intermediate_size"] = decodes ? model.d_ff : model.encoder_d_ff;
  json["max_position_embeddings"] = decodes ? model.context : model.source_context;
  json["hidden_act"] = activation_name(model.activation, kBartActivations);
  json["hidden_dropout_prob"] = model.dropout;
  json["attention_probs_dropout_prob"] = model.attention_dropout;
  json["type_vocab_size"] = model.token_types;
  json["layer_norm_eps"] = model.norm_epsilon;
  json["position_embedding_type"] = "absolute";
  json["is_decoder"] = decodes;
  json["add_cross_attention"] = decodes;
  json["tie_word_embeddings"] = true;
  json["pad_token_id"] = tokens.padding;
  return json;
}

}  // namespace

bool is_huggingface_encoder_decoder(const std::string& folder) {
  const std::string path = folder + "/config.json";
  if (!is_directory(folder) || !file_exists(path)) return false;
  const std::string type = ConfigReader(path).text_or("model_type", "");
  return std::any_of(std::begin(kPairShapes), std::end(kPairShapes),
                     [&](const PairShapeName& name) { return name.type == type; });
}

HuggingFaceEncoderDecoderConfig read_encoder_decoder_config(const std::string& folder) {
  return read_encoder_decoder_config(ConfigReader(folder + "/config.json"));
}

HuggingFaceEncoderDecoderConfig read_encoder_decoder_config(const ConfigReader& reader) {
  HuggingFaceEncoderDecoderConfig config;
  ModelOptions& model = config.model;
  model.type = "encoder_decoder";
  const std::string type = reader.text_or("model_type", "");
  const auto* found = std::find_if(std::begin(kPairShapes), std::end(kPairShapes),
                                   [&](const PairShapeName& name) { return name.type == type; });
  reader.require("model_type", found != std::end(kPairShapes),
                 "marian, pegasus, bart, mbart, t5, mt5 or encoder-decoder");
  config.shape = found->shape;
  if (config.shape != PairShape::two_berts) model.vocab_size = reader.size("vocab_size", kLargestVocabulary);
  if (config.shape == PairShape::two_berts) {
    read_two_berts(reader, model);
  } else if (config.shape == PairShape::t5) {
    read_t5(reader, model);
  } else {
    read_bart(reader, config.shape, model);
  }
  if (const Json* first = reader.find("decoder_start_token_id"); first != nullptr && *first != 0) {
    model.first_token = reader.size("decoder_start_token_id", kLargestVocabulary);
  } else if (first != nullptr) {
    model.first_token = 0;
  }
  reader.require("decoder_start_token_id", model.first_token < model.vocab_size,
                 fmt::format("a token of the vocabulary, below {}", model.vocab_size));
  if (model.source_context == 0) model.source_context = model.context;
  if (model.token_types < 0) model.token_types = 0;
  model.num_kv_heads = model.num_heads;
  if (model.head_width > 0) return config;
  for (const auto& [width, heads] :
       {std::pair(model.d_model, model.num_heads), std::pair(model.encoder_d_model, model.encoder_heads)}) {
    if (width % heads == 0) continue;
    user_error("{}: a width of {} in {} heads: expected heads of equal width; fetch the file again", reader.path(),
               width, heads);
  }
  return config;
}

HuggingFaceEncoderDecoderConfig encoder_decoder_config_for(const ModelOptions& model) {
  const bool before = model.norm_position == "pre";
  const PairShape nearest = model.positions == "relative"  ? PairShape::t5
                            : model.output_transform       ? PairShape::two_berts
                            : model.positions == "learned" ? (before ? PairShape::mbart : PairShape::bart)
                                                           : (before ? PairShape::pegasus : PairShape::marian);
  if (const std::string option = in_the_way(model, nearest); !option.empty()) {
    user_error(
        "brisk writes an encoder-decoder for Hugging Face as Marian's, Pegasus's, BART's, mBART's or T5's shape, or as two "
        "BERTs; {}, the nearest to this model, has no {}",
        class_of(nearest), option);
  }
  return {nearest, model};
}

std::string class_of(PairShape shape) {
  switch (shape) {
    case PairShape::marian: return "MarianMTModel";
    case PairShape::pegasus: return "PegasusForConditionalGeneration";
    case PairShape::bart: return "BartForConditionalGeneration";
    case PairShape::mbart: return "MBartForConditionalGeneration";
    case PairShape::t5: return "T5ForConditionalGeneration";
    case PairShape::two_berts: return "EncoderDecoderModel";
  }
  return "";
}

WrittenTokens written_tokens(const Tokenizer& target) {
  const std::optional<TokenId> end = target.end_of_document();
  std::optional<TokenId> padding;
  for (const char* word : {"<pad>", "[PAD]"}) padding = padding ? padding : target.token_id(word);
  WrittenTokens tokens;
  tokens.end = end.value_or(0);
  tokens.padding = padding.value_or(tokens.end);
  tokens.start = target.start_of_text().value_or(tokens.padding);
  return tokens;
}

std::string to_json_text(const HuggingFaceEncoderDecoderConfig& config, SafetensorsType weights,
                         const WrittenTokens& tokens) {
  const ModelOptions& model = config.model;
  Json json;
  json["architectures"] = {class_of(config.shape)};
  for (const PairShapeName& name : kPairShapes) {
    if (name.shape == config.shape && !json.contains("model_type")) json["model_type"] = name.type;
  }
  if (config.shape == PairShape::two_berts) {
    json["encoder"] = bert_json(model, false, tokens);
    json["decoder"] = bert_json(model, true, tokens);
  } else if (config.shape == PairShape::t5) {
    json["vocab_size"] = model.vocab_size;
    json["d_model"] = model.d_model;
    json["d_kv"] = model.head_width > 0 ? model.head_width : model.d_model / model.num_heads;
    json["d_ff"] = model.d_ff;
    json["num_layers"] = model.encoder_layers;
    json["num_decoder_layers"] = model.num_layers;
    json["num_heads"] = model.num_heads;
    json["n_positions"] = model.context;
    json["relative_attention_num_buckets"] = model.relative_buckets;
    json["relative_attention_max_distance"] = model.relative_distance;
    json["dropout_rate"] = model.dropout;
    json["layer_norm_epsilon"] = model.norm_epsilon;
    json["feed_forward_proj"] = activation_name(model.activation, kT5Activations);
    json["tie_word_embeddings"] = model.scale_outputs;  // which is how transformers tells the two kinds apart
    json["scale_decoder_outputs"] = model.scale_outputs;
  } else {
    json["vocab_size"] = model.share_embeddings ? model.vocab_size : model.source_vocab_size;
    json["d_model"] = model.d_model;
    json["encoder_layers"] = model.encoder_layers;
    json["decoder_layers"] = model.num_layers;
    json["encoder_attention_heads"] = model.encoder_heads;
    json["decoder_attention_heads"] = model.num_heads;
    json["encoder_ffn_dim"] = model.encoder_d_ff;
    json["decoder_ffn_dim"] = model.d_ff;
    json["num_hidden_layers"] = model.encoder_layers;
    json["activation_function"] = activation_name(model.activation, kBartActivations);
    json["max_position_embeddings"] = std::max(model.context, model.source_context);
    json["scale_embedding"] = model.scale_embeddings;
    json["dropout"] = model.dropout;
    json["attention_dropout"] = model.attention_dropout;
    json["activation_dropout"] = model.activation_dropout;
    json["tie_word_embeddings"] = true;
    if (config.shape == PairShape::marian) {
      json["share_encoder_decoder_embeddings"] = model.share_embeddings;
      json["decoder_vocab_size"] = model.vocab_size;
    }
    json["forced_eos_token_id"] = nullptr;
  }
  json["is_encoder_decoder"] = true;
  json["decoder_start_token_id"] = tokens.start;
  json["eos_token_id"] = tokens.end;
  json["pad_token_id"] = tokens.padding;
  json["bos_token_id"] = nullptr;
  json["torch_dtype"] = number_format(weights);
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace brisk
