#include "hub/huggingface/text_decoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "hub/model_limits.h"

namespace brisk {

namespace {

using Json = nlohmann::ordered_json;
using namespace model_limits;
using Shape = TextDecoderShape;

constexpr int64_t kFairseqPositionOffset = 2;
constexpr double kFairseqNormEpsilon = 1e-5;  // of TrOCR's and mBART's code; in none of their files

struct DecoderActivation {
  const char *there, *here;
};
constexpr DecoderActivation kDecoderActivations[] = {
    {"gelu", "gelu_erf"}, {"gelu_new", "gelu"},        {"relu", "relu"},      {"silu", "swish"},
    {"swish", "swish"},   {"gelu_python", "gelu_erf"}, {"gelu_fast", "gelu"}, {"gelu_pytorch_tanh", "gelu"}};

std::string decoder_activation(const ConfigReader& reader, const char* key, const char* usual) {
  const std::string word = reader.text_or(key, usual);
  std::string known;
  for (const auto& [there, here] : kDecoderActivations) {
    if (word == there) return here;
    known += (known.empty() ? "" : ", ") + std::string(there);
  }
  reader.require(key, false, known);
  return "";
}

void require_flag(const ConfigReader& reader, const char* key, bool value, bool usual) {
  reader.require(key, reader.boolean_or(key, usual) == value, value ? "true" : "false");
}

void read_bert_decoder(const ConfigReader& reader, ModelOptions& model) {
  require_flag(reader, "is_decoder", true, false);
  require_flag(reader, "add_cross_attention", true, false);
  reader.require("position_embedding_type", reader.text_or("position_embedding_type", "absolute") == "absolute",
                 "absolute");
  model.d_model = reader.size("hidden_size", kWidest);
  model.num_layers = reader.size("num_hidden_layers", kMostLayers);
  model.num_heads = reader.size("num_attention_heads", kMostHeads);
  model.d_ff = reader.size("intermediate_size", kWidestInside);
  model.context = reader.size_or("max_position_embeddings", 512, kLongestContext);
  model.token_types = reader.size_or("type_vocab_size", 2, kMostTokenTypes);
  model.activation = decoder_activation(reader, "hidden_act", "gelu");
  model.norm_epsilon = reader.number_or("layer_norm_eps", 1e-12, {.above = 0, .most = kLargestEpsilon});
  model.dropout = reader.share_or("hidden_dropout_prob", 0.1);
  model.attention_dropout = reader.share_or("attention_probs_dropout_prob", 0.1);
  model.norm_position = "post";
  model.embedding_norm = model.output_transform = true;
  model.output_bias = "trained";
}

void read_gpt2_decoder(const ConfigReader& reader, ModelOptions& model) {
  require_flag(reader, "add_cross_attention", true, false);
  require_flag(reader, "scale_attn_weights", true, true);
  require_flag(reader, "scale_attn_by_inverse_layer_idx", false, false);
  model.d_model = reader.size("n_embd", kWidest);
  model.num_layers = reader.size("n_layer", kMostLayers);
  model.num_heads = reader.size("n_head", kMostHeads);
  model.d_ff = reader.size_or("n_inner", 4 * model.d_model, kWidestInside);
  model.context = reader.size_or("n_positions", 1024, kLongestContext);
  model.activation = decoder_activation(reader, "activation_function", "gelu_new");
  model.norm_epsilon = reader.number_or("layer_norm_epsilon", 1e-5, {.above = 0, .most = kLargestEpsilon});
  model.dropout = reader.share_or("resid_pdrop", 0.1);
  model.attention_dropout = reader.share_or("attn_pdrop", 0.1);
  model.norm_position = "pre";
}

// TrOCR's and mBART's.
void read_bart_decoder(const ConfigReader& reader, bool before, ModelOptions& model) {
  model.d_model = reader.size("d_model", kWidest);
  model.num_layers = reader.size("decoder_layers", kMostLayers);
  model.num_heads = reader.size("decoder_attention_heads", kMostHeads);
  model.d_ff = reader.size("decoder_ffn_dim", kWidestInside);
  model.context = reader.size_or("max_position_embeddings", before ? 1024 : 512, kLongestContext);
  model.activation = decoder_activation(reader, "activation_function", "gelu");
  model.scale_embeddings = reader.boolean_or("scale_embedding", false);
  model.norm_epsilon = kFairseqNormEpsilon;
  model.dropout = reader.share_or("dropout", 0.1);
  model.attention_dropout = reader.share_or("attention_dropout", 0);
  model.activation_dropout = reader.share_or("activation_dropout", 0);
  model.norm_position = before ? "pre" : "post";
  model.embedding_norm = before || reader.boolean_or("layernorm_embedding", true);
  model.position_offset = kFairseqPositionOffset;
  require_flag(reader, "add_final_layer_norm", before, before);
  require_flag(reader, "normalize_before", before, before);
  if (!before) require_flag(reader, "use_learned_position_embeddings", true, true);
}

// Of each parameter of the store: as many rows and columns as it has, divided equally over the parts.
class DecoderMap {
 public:
  DecoderMap(const ParameterStore& store, bool transposed) : store_(store), transposed_(transposed) {}

  bool has(const std::string& parameter) const { return store_.find(parameter) != nullptr; }
  void table(const std::string& ours, const std::string& theirs) { add(ours, {theirs}, false); }
  void matrix(const std::string& ours, const std::vector<std::string>& theirs) {
    add(ours + ".weight", with_ending(theirs, ".weight"), transposed_);
    if (has(ours + ".bias")) add(ours + ".bias", with_ending(theirs, ".bias"), false);
  }
  void norm(const std::string& ours, const std::string& theirs) {
    add(ours + ".gain", {theirs + ".weight"}, false);
    add(ours + ".bias", {theirs + ".bias"}, false);
  }
  void vector(const std::string& ours, const std::string& theirs) { add(ours, {theirs}, false); }
  std::vector<WeightMap> take() { return std::move(map_); }

 private:
  static std::vector<std::string> with_ending(std::vector<std::string> names, const char* ending) {
    for (std::string& name : names) name += ending;
    return names;
  }
  void add(const std::string& ours, const std::vector<std::string>& theirs, bool transposed) {
    const ParameterSpec& spec = store_.find(ours)->spec;
    const bool is_vector = !ours.ends_with(".weight");
    WeightMap entry{ours, {}};
    for (const std::string& name : theirs) {
      entry.parts.push_back({.name = name,
                             .outputs = (is_vector ? spec.cols : spec.rows) / std::ssize(theirs),
                             .inputs = is_vector ? 0 : spec.cols,
                             .transposed = transposed});
    }
    map_.push_back(std::move(entry));
  }

  const ParameterStore& store_;
  bool transposed_;
  std::vector<WeightMap> map_;
};

std::string layer_of(int64_t number) { return fmt::format("decoder.layers.{}.", number); }

void map_bert_layer(const std::string& ours, const std::string& theirs, DecoderMap& map) {
  const auto of = [&](const char* name) { return theirs + name; };
  map.matrix(ours + "qkv", {of("attention.self.query"), of("attention.self.key"), of("attention.self.value")});
  map.matrix(ours + "attention_out", {of("attention.output.dense")});
  map.norm(ours + "attention_norm", of("attention.output.LayerNorm"));
  map.matrix(ours + "cross_q", {of("crossattention.self.query")});
  map.matrix(ours + "cross_kv", {of("crossattention.self.key"), of("crossattention.self.value")});
  map.matrix(ours + "cross_out", {of("crossattention.output.dense")});
  map.norm(ours + "cross_norm", of("crossattention.output.LayerNorm"));
  map.matrix(ours + "up", {of("intermediate.dense")});
  map.matrix(ours + "down", {of("output.dense")});
  map.norm(ours + "feed_forward_norm", of("output.LayerNorm"));
}

void map_gpt2_layer(const std::string& ours, const std::string& theirs, DecoderMap& map) {
  const auto of = [&](const char* name) { return theirs + name; };
  map.matrix(ours + "qkv", {of("attn.c_attn")});
  map.matrix(ours + "attention_out", {of("attn.c_proj")});
  map.norm(ours + "attention_norm", of("ln_1"));
  map.matrix(ours + "cross_q", {of("crossattention.q_attn")});
  map.matrix(ours + "cross_kv", {of("crossattention.c_attn")});
  map.matrix(ours + "cross_out", {of("crossattention.c_proj")});
  map.norm(ours + "cross_norm", of("ln_cross_attn"));
  map.matrix(ours + "up", {of("mlp.c_fc")});
  map.matrix(ours + "down", {of("mlp.c_proj")});
  map.norm(ours + "feed_forward_norm", of("ln_2"));
}

void map_bart_layer(const std::string& ours, const std::string& theirs, DecoderMap& map) {
  const auto of = [&](const char* name) { return theirs + name; };
  map.matrix(ours + "qkv", {of("self_attn.q_proj"), of("self_attn.k_proj"), of("self_attn.v_proj")});
  map.matrix(ours + "attention_out", {of("self_attn.out_proj")});
  map.norm(ours + "attention_norm", of("self_attn_layer_norm"));
  map.matrix(ours + "cross_q", {of("encoder_attn.q_proj")});
  map.matrix(ours + "cross_kv", {of("encoder_attn.k_proj"), of("encoder_attn.v_proj")});
  map.matrix(ours + "cross_out", {of("encoder_attn.out_proj")});
  map.norm(ours + "cross_norm", of("encoder_attn_layer_norm"));
  map.matrix(ours + "up", {of("fc1")});
  map.matrix(ours + "down", {of("fc2")});
  map.norm(ours + "feed_forward_norm", of("final_layer_norm"));
}

const char* decoder_model_type(Shape shape) {
  switch (shape) {
    case Shape::bert: return "bert";
    case Shape::gpt2: return "gpt2";
    case Shape::trocr: return "trocr";
    case Shape::mbart: return "mbart";
  }
  return "";
}

std::string decoder_class(Shape shape) {
  switch (shape) {
    case Shape::bert: return "BertLMHeadModel";
    case Shape::gpt2: return "GPT2LMHeadModel";
    case Shape::trocr: return "TrOCRForCausalLM";
    case Shape::mbart: return "MBartForCausalLM";
  }
  return "";
}

// The option that keeps the decoder from being of this shape; empty: none.
std::string decoder_in_the_way(const ModelOptions& model, Shape shape) {
  const bool bert = shape == Shape::bert, gpt2 = shape == Shape::gpt2, fairseq = !bert && !gpt2;
  const bool before = gpt2 || shape == Shape::mbart;
  const bool own_width = model.head_width > 0 && model.head_width * model.num_heads != model.d_model;
  const auto is_known = [&](const DecoderActivation& known) { return model.activation == known.here; };
  const std::pair<bool, std::string> checks[] = {
      {model.positions == "learned", "positions " + model.positions},
      {model.norm_position == (before ? "pre" : "post"), "norm_position " + model.norm_position},
      {model.norm == "layernorm", "norm " + model.norm},
      {model.bias, "layers without bias"},
      {model.embedding_norm == !gpt2 || shape == Shape::trocr,
       model.embedding_norm ? "embedding_norm" : "embeddings without embedding_norm"},
      {std::any_of(std::begin(kDecoderActivations), std::end(kDecoderActivations), is_known),
       "activation " + model.activation},
      {model.scale_attention, "scale_attention false"},
      {!model.scale_outputs, "scale_outputs"},
      {!model.scale_embeddings || fairseq, "scale_embeddings"},
      {!own_width, fmt::format("head_width {}", model.head_width)},
      {model.output_transform == bert, bert ? "outputs without output_transform" : "output_transform"},
      {(model.output_bias == "trained") == bert && model.output_bias != "fixed", "output_bias " + model.output_bias},
      {model.position_offset == (fairseq ? kFairseqPositionOffset : 0),
       fmt::format("position_offset {}", model.position_offset)},
      {(model.token_types > 0) == bert, bert ? "no token_types" : "token_types"},
      {model.bridge || shape == Shape::trocr, "bridge false"},
      {!fairseq || model.norm_epsilon == kFairseqNormEpsilon, fmt::format("norm_epsilon {:g}", model.norm_epsilon)}};
  for (const auto& [fits, option] : checks) {
    if (!fits) return option;
  }
  return "";
}

}  // namespace

TextDecoderShape read_text_decoder_config(const ConfigReader& decoder, ModelOptions& model) {
  const std::string type = decoder.text_or("model_type", "");
  constexpr Shape kAll[] = {Shape::bert, Shape::gpt2, Shape::trocr, Shape::mbart};
  const auto* shape =
      std::find_if(std::begin(kAll), std::end(kAll), [&](Shape one) { return type == decoder_model_type(one); });
  decoder.require("model_type", shape != std::end(kAll), "bert, gpt2, trocr or mbart");
  model.vocab_size = decoder.size("vocab_size", kLargestVocabulary);
  model.positions = "learned";
  model.scale_embeddings = false;
  model.token_types = 0;
  if (*shape == Shape::bert) {
    read_bert_decoder(decoder, model);
  } else if (*shape == Shape::gpt2) {
    read_gpt2_decoder(decoder, model);
  } else {
    read_bart_decoder(decoder, *shape == Shape::mbart, model);
  }
  model.num_kv_heads = model.num_heads;
  if (model.d_model % model.num_heads != 0) {
    user_error("{}: a width of {} in {} heads: expected heads of equal width; fetch the file again", decoder.path(),
               model.d_model, model.num_heads);
  }
  // Of TrOCR, whose keys and values then read the encoder's width.
  const bool reads_width = decoder.find("cross_attention_hidden_size") != nullptr;
  decoder.require("cross_attention_hidden_size", !reads_width || *shape == Shape::trocr, "null");
  model.bridge = !reads_width;
  return *shape;
}

TextDecoderNames text_decoder_names(TextDecoderShape shape) {
  switch (shape) {
    case Shape::bert:
      return {"decoder.cls.predictions.decoder.weight", "decoder.bert.embeddings.word_embeddings.weight",
              "decoder.bert.encoder.layer."};
    case Shape::gpt2: return {"decoder.lm_head.weight", "decoder.transformer.wte.weight", "decoder.transformer.h."};
    case Shape::trocr:
      return {"decoder.output_projection.weight", "decoder.model.decoder.embed_tokens.weight",
              "decoder.model.decoder.layers."};
    case Shape::mbart:
      return {"decoder.lm_head.weight", "decoder.model.decoder.embed_tokens.weight", "decoder.model.decoder.layers."};
  }
  return {};
}

std::vector<WeightMap> text_decoder_weight_map(TextDecoderShape shape, const ParameterStore& store) {
  const bool bert = shape == Shape::bert, gpt2 = shape == Shape::gpt2;
  const TextDecoderNames names = text_decoder_names(shape);
  DecoderMap map(store, gpt2);
  map.table("target_embedding.weight", names.table);
  const std::string tables = bert   ? "decoder.bert.embeddings."
                             : gpt2 ? "decoder.transformer."
                                    : "decoder.model.decoder.";
  map.table("decoder.positions.weight", tables + (bert   ? "position_embeddings.weight"
                                                  : gpt2 ? "wpe.weight"
                                                         : "embed_positions.weight"));
  if (map.has("decoder.types.weight")) map.table("decoder.types.weight", tables + "token_type_embeddings.weight");
  if (map.has("decoder.embedding_norm.gain")) {
    map.norm("decoder.embedding_norm", tables + (bert ? "LayerNorm" : "layernorm_embedding"));
  }
  for (int64_t l = 0; map.has(layer_of(l) + "qkv.weight"); ++l) {
    const std::string theirs = fmt::format("{}{}.", names.layers, l);
    if (bert) {
      map_bert_layer(layer_of(l), theirs, map);
    } else if (gpt2) {
      map_gpt2_layer(layer_of(l), theirs, map);
    } else {
      map_bart_layer(layer_of(l), theirs, map);
    }
  }
  if (map.has("decoder.final_norm.gain")) map.norm("decoder.final_norm", tables + (gpt2 ? "ln_f" : "layer_norm"));
  DecoderMap plain(store, false);
  if (map.has("bridge.weight")) plain.matrix("bridge", {"enc_to_dec_proj"});
  if (map.has("head_dense.weight")) {
    plain.matrix("head_dense", {"decoder.cls.predictions.transform.dense"});
    plain.norm("head_norm", "decoder.cls.predictions.transform.LayerNorm");
  }
  if (map.has("head.weight")) plain.table("head.weight", names.head);
  if (map.has("head.bias")) plain.vector("head.bias", "decoder.cls.predictions.bias");
  std::vector<WeightMap> all = map.take();
  for (WeightMap& entry : plain.take()) all.push_back(std::move(entry));
  return all;
}

TextDecoderShape text_decoder_shape_for(const ModelOptions& model) {
  const bool before = model.norm_position == "pre";
  const Shape nearest = model.output_transform      ? Shape::bert
                        : !before                   ? Shape::trocr
                        : model.position_offset > 0 ? Shape::mbart
                                                    : Shape::gpt2;
  if (const std::string option = decoder_in_the_way(model, nearest); !option.empty()) {
    user_error(
        "brisk writes the decoder of a model of images for Hugging Face as BERT's, GPT-2's, TrOCR's or mBART's shape; {}, the "
        "nearest to this model, has no {}",
        decoder_class(nearest), option);
  }
  return nearest;
}

nlohmann::ordered_json text_decoder_json(TextDecoderShape shape, const ModelOptions& model,
                                         const WrittenTokens& tokens) {
  Json json;
  const auto* activation = std::find_if(std::begin(kDecoderActivations), std::end(kDecoderActivations),
                                        [&](const DecoderActivation& one) { return model.activation == one.here; });
  json["architectures"] = {decoder_class(shape)};
  json["model_type"] = decoder_model_type(shape);
  json["vocab_size"] = model.vocab_size;
  if (shape == Shape::bert) {
    json["hidden_size"] = model.d_model;
    json["num_hidden_layers"] = model.num_layers;
    json["num_attention_heads"] = model.num_heads;
    json["intermediate_size"] = model.d_ff;
    json["max_position_embeddings"] = model.context;
    json["type_vocab_size"] = model.token_types;
    json["hidden_act"] = activation->there;
    json["layer_norm_eps"] = model.norm_epsilon;
    json["hidden_dropout_prob"] = model.dropout;
    json["attention_probs_dropout_prob"] = model.attention_dropout;
    json["position_embedding_type"] = "absolute";
  } else if (shape == Shape::gpt2) {
    json["n_embd"] = model.d_model;
    json["n_layer"] = model.num_layers;
    json["n_head"] = model.num_heads;
    json["n_inner"] = model.d_ff;
    json["n_positions"] = model.context;
    json["activation_function"] = activation->there;
    json["layer_norm_epsilon"] = model.norm_epsilon;
    json["resid_pdrop"] = json["embd_pdrop"] = model.dropout;
    json["attn_pdrop"] = model.attention_dropout;
  } else {
    json["d_model"] = model.d_model;
    json["decoder_layers"] = model.num_layers;
    json["decoder_attention_heads"] = model.num_heads;
    json["decoder_ffn_dim"] = model.d_ff;
    json["max_position_embeddings"] = model.context;
    json["activation_function"] = activation->there;
    json["scale_embedding"] = model.scale_embeddings;
    json["dropout"] = model.dropout;
    json["attention_dropout"] = model.attention_dropout;
    json["activation_dropout"] = model.activation_dropout;
    if (shape == Shape::trocr) {
      json["layernorm_embedding"] = model.embedding_norm;
      json["use_learned_position_embeddings"] = true;
      const bool swin = model.image_encoder == "swin";
      const auto halvings = swin ? std::ssize(model.encoder_depths) - 1 : 0;
      if (!model.bridge) json["cross_attention_hidden_size"] = model.encoder_d_model << halvings;
    } else {
      json["hidden_size"] = model.d_model;
      json["add_final_layer_norm"] = true;
    }
  }
  json["is_decoder"] = true;
  json["add_cross_attention"] = true;
  json["is_encoder_decoder"] = false;
  json["tie_word_embeddings"] = model.tie_embeddings;
  json["pad_token_id"] = tokens.padding;
  json["eos_token_id"] = tokens.end;
  json["bos_token_id"] = tokens.start;
  return json;
}

}  // namespace brisk
