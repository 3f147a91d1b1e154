#include "hub/huggingface/encoder_decoder.h"

#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/files/files.h"
#include "base/files/unfinished_folder.h"
#include "base/parse_json.h"

namespace brisk {

namespace {

using Json = nlohmann::ordered_json;
using PairShape = HuggingFaceEncoderDecoderConfig::Shape;

// What a shape calls the parts of a layer.
struct LayerNames {
  std::string prefix;
  std::vector<std::string> qkv;
  std::string attention_out, attention_norm;
  std::string cross_query;
  std::vector<std::string> cross_key_value;
  std::string cross_out, cross_norm;
  std::vector<std::string> up;
  std::string down, feed_forward_norm;
};

std::vector<std::string> prefixed(const std::string& prefix, const std::vector<std::string>& names) {
  std::vector<std::string> all;
  for (const std::string& name : names) all.push_back(prefix + name);
  return all;
}

LayerNames bart_names(const std::string& stack, int64_t layer) {
  const std::vector<std::string> key_value = {"k_proj", "v_proj"};
  return {.prefix = fmt::format("model.{}.layers.{}.", stack, layer),
          .qkv = prefixed("self_attn.", {"q_proj", "k_proj", "v_proj"}),
          .attention_out = "self_attn.out_proj",
          .attention_norm = "self_attn_layer_norm",
          .cross_query = "encoder_attn.q_proj",
          .cross_key_value = prefixed("encoder_attn.", key_value),
          .cross_out = "encoder_attn.out_proj",
          .cross_norm = "encoder_attn_layer_norm",
          .up = {"fc1"},
          .down = "fc2",
          .feed_forward_norm = "final_layer_norm"};
}

LayerNames t5_names(const std::string& stack, int64_t layer, bool gated) {
  const std::string dense = stack == "decoder" ? "2." : "1.";
  return {
      .prefix = fmt::format("{}.block.{}.layer.", stack, layer),
      .qkv = prefixed("0.SelfAttention.", {"q", "k", "v"}),
      .attention_out = "0.SelfAttention.o",
      .attention_norm = "0.layer_norm",
      .cross_query = "1.EncDecAttention.q",
      .cross_key_value = prefixed("1.EncDecAttention.", {"k", "v"}),
      .cross_out = "1.EncDecAttention.o",
      .cross_norm = "1.layer_norm",
      .up = gated ? prefixed(dense + "DenseReluDense.", {"wi_0", "wi_1"}) : prefixed(dense + "DenseReluDense.", {"wi"}),
      .down = dense + "DenseReluDense.wo",
      .feed_forward_norm = dense + "layer_norm"};
}

const char* bert_prefix(const std::string& stack) { return stack == "decoder" ? "decoder.bert." : "encoder."; }

LayerNames bert_names(const std::string& stack, int64_t layer) {
  return {.prefix = fmt::format("{}encoder.layer.{}.", bert_prefix(stack), layer),
          .qkv = prefixed("attention.self.", {"query", "key", "value"}),
          .attention_out = "attention.output.dense",
          .attention_norm = "attention.output.LayerNorm",
          .cross_query = "crossattention.self.query",
          .cross_key_value = prefixed("crossattention.self.", {"key", "value"}),
          .cross_out = "crossattention.output.dense",
          .cross_norm = "crossattention.output.LayerNorm",
          .up = {"intermediate.dense"},
          .down = "output.dense",
          .feed_forward_norm = "output.LayerNorm"};
}

// Names of the same numbers: which of them a file has depends on the version that wrote it.
std::vector<std::string> other_names(PairShape shape, const std::string& name) {
  if (shape == PairShape::t5 && name == "shared.weight") {
    return {name, "encoder.embed_tokens.weight", "decoder.embed_tokens.weight"};
  }
  if (name == "model.shared.weight") {
    return {name, "model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight", "lm_head.weight"};
  }
  if (name == "model.decoder.embed_tokens.weight") return {name, "lm_head.weight"};
  if (name == "decoder.cls.predictions.bias") return {name, "decoder.cls.predictions.decoder.bias"};
  return {name};
}

// Of each parameter of the store: as many rows and columns as it has, divided equally over the parts.
class PairMapWriter {
 public:
  explicit PairMapWriter(const ParameterStore& store) : store_(store) {}

  bool has(const std::string& parameter) const { return store_.find(parameter) != nullptr; }
  void matrix(const std::string& ours, const std::vector<std::string>& theirs) {
    parts(ours + ".weight", theirs, ".weight");
    if (has(ours + ".bias")) parts(ours + ".bias", theirs, ".bias");
  }
  void norm(const std::string& ours, const std::string& theirs) {
    parts(ours + ".gain", {theirs}, ".weight");
    if (has(ours + ".bias")) parts(ours + ".bias", {theirs}, ".bias");
  }
  void parts(const std::string& ours, const std::vector<std::string>& theirs, const std::string& ending) {
    const ParameterSpec& spec = store_.find(ours)->spec;
    const bool is_vector = ending == ".bias" || ours.ends_with(".gain");
    const auto count = std::ssize(theirs);
    WeightMap entry{ours, {}};
    for (const std::string& name : theirs) {
      entry.parts.push_back({.name = name.empty() ? name : name + ending,
                             .outputs = (is_vector ? spec.cols : spec.rows) / count,
                             .inputs = is_vector ? 0 : spec.cols});
    }
    map_.push_back(std::move(entry));
  }
  std::vector<WeightMap> take() { return std::move(map_); }

 private:
  const ParameterStore& store_;
  std::vector<WeightMap> map_;
};

bool is_sinusoidal(const Parameter& parameter) {
  return parameter.spec.initial.kind == Initial::Kind::sinusoids ||
         parameter.spec.initial.kind == Initial::Kind::interleaved_sinusoids;
}

}  // namespace

std::vector<WeightMap> encoder_decoder_weight_map(const HuggingFaceEncoderDecoderConfig& config,
                                                  const ParameterStore& store) {
  const PairShape shape = config.shape;
  const bool berts = shape == PairShape::two_berts, t5 = shape == PairShape::t5;
  const bool gated = config.model.activation == "geglu" || config.model.activation == "swiglu";
  PairMapWriter map(store);
  if (map.has("embedding.weight")) {
    map.matrix("embedding", {t5 ? "shared" : "model.shared"});
  } else {
    map.matrix("source_embedding", {berts ? "encoder.embeddings.word_embeddings" : "model.encoder.embed_tokens"});
    map.matrix("target_embedding", {berts ? "decoder.bert.embeddings.word_embeddings" : "model.decoder.embed_tokens"});
  }
  for (const std::string stack : {"encoder", "decoder"}) {
    const std::string tables = berts ? bert_prefix(stack) + std::string("embeddings.") : "model." + stack + ".";
    if (const Parameter* positions = store.find(stack + ".positions.weight");
        positions != nullptr && !is_sinusoidal(*positions)) {
      map.matrix(stack + ".positions", {tables + (berts ? "position_embeddings" : "embed_positions")});
    }
    if (map.has(stack + ".types.weight")) map.matrix(stack + ".types", {tables + "token_type_embeddings"});
    if (map.has(stack + ".relative.weight")) {
      map.matrix(stack + ".relative", {stack + ".block.0.layer.0.SelfAttention.relative_attention_bias"});
    }
    if (map.has(stack + ".embedding_norm.gain")) {
      map.norm(stack + ".embedding_norm", tables + (berts ? "LayerNorm" : "layernorm_embedding"));
    }
    for (int64_t l = 0; map.has(fmt::format("{}.layers.{}.qkv.weight", stack, l)); ++l) {
      const std::string ours = fmt::format("{}.layers.{}.", stack, l);
      const LayerNames names = berts ? bert_names(stack, l) : t5 ? t5_names(stack, l, gated) : bart_names(stack, l);
      map.matrix(ours + "qkv", prefixed(names.prefix, names.qkv));
      map.matrix(ours + "attention_out", {names.prefix + names.attention_out});
      map.norm(ours + "attention_norm", names.prefix + names.attention_norm);
      if (stack == "decoder") {
        map.matrix(ours + "cross_q", {names.prefix + names.cross_query});
        map.matrix(ours + "cross_kv", prefixed(names.prefix, names.cross_key_value));
        map.matrix(ours + "cross_out", {names.prefix + names.cross_out});
        map.norm(ours + "cross_norm", names.prefix + names.cross_norm);
      }
      map.matrix(ours + "up", prefixed(names.prefix, names.up));
      map.matrix(ours + "down", {names.prefix + names.down});
      map.norm(ours + "feed_forward_norm", names.prefix + names.feed_forward_norm);
    }
    if (map.has(stack + ".final_norm.gain")) {
      map.norm(stack + ".final_norm", t5 ? stack + ".final_layer_norm" : "model." + stack + ".layer_norm");
    }
  }
  if (map.has("bridge.weight")) map.matrix("bridge", {"enc_to_dec_proj"});
  if (map.has("pooler.weight")) map.matrix("pooler", {"encoder.pooler.dense"});
  if (map.has("head_dense.weight")) {
    map.matrix("head_dense", {"decoder.cls.predictions.transform.dense"});
    map.norm("head_norm", "decoder.cls.predictions.transform.LayerNorm");
  }
  if (map.has("head.weight")) map.parts("head.weight", {"lm_head"}, ".weight");
  if (map.has("head.bias") && berts) map.parts("head.bias", {"decoder.cls.predictions"}, ".bias");
  if (map.has("head.bias") && !berts) {  // [1, V] there, unlike other biases
    const int64_t words = store.find("head.bias")->spec.cols;
    std::vector<WeightMap> all = map.take();
    all.push_back({"head.bias", {{.name = "final_logits_bias", .outputs = 1, .inputs = words}}});
    return all;
  }
  return map.take();
}

HuggingFaceEncoderDecoder::HuggingFaceEncoderDecoder(const std::string& folder)
    : path_(folder), config_(read_encoder_decoder_config(folder)), files_(folder) {
  if (config_.shape != PairShape::t5) return;
  const SafetensorsEntry *head = files_.find("lm_head.weight"), *table = find("shared.weight");
  config_.model.tie_embeddings =
      head == nullptr || (table != nullptr && head->bytes == table->bytes &&
                          std::memcmp(head->data, table->data, static_cast<size_t>(table->bytes)) == 0);
}

const SafetensorsEntry* HuggingFaceEncoderDecoder::find(const std::string& name) const {
  for (const std::string& spelling : other_names(config_.shape, name)) {
    if (const SafetensorsEntry* entry = files_.find(spelling); entry != nullptr) return entry;
  }
  return nullptr;
}

WeightSource HuggingFaceEncoderDecoder::source(NonFinite nonfinite) const {
  return {path_, [this](const std::string& name) { return find(name); }, nonfinite};
}

// A bias of the outputs that the files lack is 0; a pooler is not asked for.
std::vector<WeightMap> HuggingFaceEncoderDecoder::map(const ParameterStore& store) const {
  std::vector<WeightMap> map = encoder_decoder_weight_map(config_, store);
  for (WeightMap& entry : map) {
    const bool may_lack = entry.parameter == "head.bias" || entry.parameter.starts_with("pooler.");
    if (may_lack && find(entry.parts[0].name) == nullptr) entry.parts[0].name.clear();
  }
  return map;
}

// What is one table here may be several in the files, which must be the same.
void HuggingFaceEncoderDecoder::check_ties() const {
  std::vector<std::pair<std::string, std::string>> ties;
  if (config_.shape == PairShape::two_berts) {
    ties = {{"decoder.bert.embeddings.word_embeddings.weight", "decoder.cls.predictions.decoder.weight"}};
  } else if (config_.shape != PairShape::t5) {
    ties = {{config_.model.share_embeddings ? "model.shared.weight" : "model.decoder.embed_tokens.weight",
             "lm_head.weight"}};
  }
  for (const auto& [table, head] : ties) {
    const SafetensorsEntry *one = find(table), *other = files_.find(head);
    if (one == nullptr || other == nullptr || one->data == other->data) continue;
    if (one->bytes == other->bytes && std::memcmp(one->data, other->data, static_cast<size_t>(one->bytes)) == 0)
      continue;
    user_error(
        "{}: {} is not the token embedding; brisk's output projection of this shape is the embedding "
        "(tie_word_embeddings): fetch the folder again",
        path_, head);
  }
}

void HuggingFaceEncoderDecoder::check(const ParameterStore& store) const {
  const ModelOptions& model = config_.model;
  const auto before = [&](const std::string& stack) {
    const LayerNames names = config_.shape == PairShape::two_berts ? bert_names(stack, 0)
                             : config_.shape == PairShape::t5      ? t5_names(stack, 0, false)
                                                                   : bart_names(stack, 0);
    return names.prefix.substr(0, names.prefix.find('0'));
  };
  check_layers(files_.names(), before("encoder"), model.encoder_layers, path_);
  check_layers(files_.names(), before("decoder"), model.num_layers, path_);
  check_weights(map(store), source(NonFinite::refuse));
}

void HuggingFaceEncoderDecoder::load_into(ParameterStore& store, NonFinite nonfinite) const {
  files_.advise_sequential();
  files_.check_bytes();
  check_ties();
  std::set<std::string> computed;
  for (const auto& parameter : store.all()) {
    if (is_sinusoidal(*parameter)) computed.insert(parameter->spec.name);
  }
  load_weights(map(store), source(nonfinite), store, computed);
  for (const std::string& name : computed) store.initialise(*store.find(name), 0);
}

void write_huggingface_encoder_decoder(const std::string& folder, const ModelOptions& model,
                                       const ParameterStore& store, const Tokenizer& source, const Tokenizer& target,
                                       SafetensorsType type, int64_t max_length) {
  const HuggingFaceEncoderDecoderConfig config = encoder_decoder_config_for(model);
  const bool holds_files = file_exists(folder + "/config.json") || file_exists(folder + "/" + kWeightsFile);
  if (holds_files && !UnfinishedFolder::is(folder)) {
    user_error("{}: it holds a model already; choose another folder with --output", folder);
  }
  UnfinishedFolder unfinished(folder);
  SafetensorsWriter writer(folder + "/" + kWeightsFile);
  writer.add_metadata("format", "pt");
  for (const WeightMap& entry : encoder_decoder_weight_map(config, store)) {
    for (const StoredTensor& tensor : stored_tensors(entry, store, type)) {
      writer.add(tensor.name, tensor.type, tensor.shape, fill_from(tensor));
    }
  }
  writer.finish();
  const TokenizerFolderOptions options{.token_types = false, .max_length = max_length};
  save_tokenizer_folder(source, folder, options);
  if (&source != &target) save_tokenizer_folder(target, folder + "/target", options);
  WrittenTokens tokens = written_tokens(target);
  if (model.first_token >= 0) tokens.start = static_cast<TokenId>(model.first_token);
  const std::string text = to_json_text(config, type, tokens);
  const Json json = parse_own_json(text);
  Json generation;
  for (const char* key : {"decoder_start_token_id", "eos_token_id", "pad_token_id"}) generation[key] = json.at(key);
  write_file_atomically(folder + "/generation_config.json", generation.dump(2) + "\n");
  write_file_atomically(folder + "/config.json", text);  // last: it makes the folder a model
  unfinished.finish();
}

}  // namespace brisk
