#include "hub/huggingface/encoder.h"

#include <cstring>
#include <map>
#include <set>
#include <string_view>

#include "base/error.h"
#include "base/files/files.h"
#include "base/files/unfinished_folder.h"
#include "hub/formats/weight_files.h"

namespace brisk {

namespace {

using Head = HuggingFaceEncoderConfig::Head;

// What each of the three calls the same things; layers are counted in place of {}.
struct Names {
  std::string prefix, layer;
  std::string query, key, value, attention_out, attention_norm, up, down, feed_forward_norm;
  std::string pooler, classifier;
  std::string mlm_dense, mlm_norm, mlm_bias;
  std::string mlm_bias_again, mlm_table;  // the same numbers under other names in some files
};

Names names_of(const std::string& type) {
  if (type == "distilbert") {
    return {.prefix = "distilbert.",
            .layer = "transformer.layer.{}.",
            .query = "attention.q_lin",
            .key = "attention.k_lin",
            .value = "attention.v_lin",
            .attention_out = "attention.out_lin",
            .attention_norm = "sa_layer_norm",
            .up = "ffn.lin1",
            .down = "ffn.lin2",
            .feed_forward_norm = "output_layer_norm",
            .pooler = "pre_classifier",
            .classifier = "classifier",
            .mlm_dense = "vocab_transform",
            .mlm_norm = "vocab_layer_norm",
            .mlm_bias = "vocab_projector.bias",
            .mlm_bias_again = "vocab_projector.bias",
            .mlm_table = "vocab_projector.weight"};
  }
  const bool bert = type == "bert";
  return {.prefix = bert ? "bert." : "roberta.",
          .layer = "encoder.layer.{}.",
          .query = "attention.self.query",
          .key = "attention.self.key",
          .value = "attention.self.value",
          .attention_out = "attention.output.dense",
          .attention_norm = "attention.output.LayerNorm",
          .up = "intermediate.dense",
          .down = "output.dense",
          .feed_forward_norm = "output.LayerNorm",
          .pooler = bert ? "bert.pooler.dense" : "classifier.dense",
          .classifier = bert ? "classifier" : "classifier.out_proj",
          .mlm_dense = bert ? "cls.predictions.transform.dense" : "lm_head.dense",
          .mlm_norm = bert ? "cls.predictions.transform.LayerNorm" : "lm_head.layer_norm",
          .mlm_bias = bert ? "cls.predictions.bias" : "lm_head.bias",
          .mlm_bias_again = bert ? "cls.predictions.decoder.bias" : "lm_head.decoder.bias",
          .mlm_table = bert ? "cls.predictions.decoder.weight" : "lm_head.decoder.weight"};
}

// The parameters that stand on the encoder, any of which a checkpoint may lack.
bool is_of_head(std::string_view parameter) {
  return parameter.starts_with("pooler.") || parameter.starts_with("classifier.") || parameter.starts_with("mlm");
}

// A name in files that are older, or were saved without a head: the first that is there.
std::vector<std::string> spellings(const std::string& name, const Names& names) {
  std::vector<std::string> all = {name};
  if (name == names.mlm_bias) all.push_back(names.mlm_bias_again);
  // TensorFlow's words, in the first files of BERT.
  for (const auto& [today, before] :
       {std::pair("LayerNorm.weight", "LayerNorm.gamma"), {"LayerNorm.bias", "LayerNorm.beta"}}) {
    if (name.ends_with(today)) all.push_back(name.substr(0, name.size() - std::strlen(today)) + before);
  }
  const size_t with_prefix = all.size();
  for (size_t i = 0; i < with_prefix; ++i) {
    if (all[i].starts_with(names.prefix)) all.push_back(all[i].substr(names.prefix.size()));
  }
  return all;
}

class MapWriter {
 public:
  MapWriter(const ModelOptions& model, const ParameterStore& store) : model_(model), store_(store) {}

  void table(const std::string& ours, const std::string& theirs, int64_t rows) {
    map_.push_back({ours + ".weight", {{.name = theirs + ".weight", .outputs = rows, .inputs = model_.d_model}}});
  }
  void linear(const std::string& ours, const std::vector<std::string>& theirs, int64_t outputs, int64_t inputs) {
    WeightMap weight{ours + ".weight", {}}, bias{ours + ".bias", {}};
    for (const std::string& name : theirs) {
      weight.parts.push_back({.name = name + ".weight", .outputs = outputs, .inputs = inputs});
      bias.parts.push_back({.name = name + ".bias", .outputs = outputs});
    }
    map_.push_back(std::move(weight));
    map_.push_back(std::move(bias));
  }
  void norm(const std::string& ours, const std::string& theirs) {
    map_.push_back({ours + ".gain", {{.name = theirs + ".weight", .outputs = model_.d_model}}});
    map_.push_back({ours + ".bias", {{.name = theirs + ".bias", .outputs = model_.d_model}}});
  }
  void vector(const std::string& ours, const std::string& theirs, int64_t length) {
    map_.push_back({ours, {{.name = theirs, .outputs = length}}});
  }
  bool has(const std::string& parameter) const { return store_.find(parameter) != nullptr; }
  std::vector<WeightMap> take() { return std::move(map_); }

 private:
  const ModelOptions& model_;
  const ParameterStore& store_;
  std::vector<WeightMap> map_;
};

// "cls.predictions.* (5 tensors), encoder.layer.* (96 tensors)"
std::string grouped(const std::vector<std::string>& names) {
  std::map<std::string, int64_t> groups;
  for (const std::string& name : names) {
    const size_t first = name.find('.'), second = first == std::string::npos ? first : name.find('.', first + 1);
    ++groups[second == std::string::npos ? name : name.substr(0, second) + ".*"];
  }
  std::string text;
  for (const auto& [group, count] : groups) {
    text += (text.empty() ? "" : ", ") + group;
    if (count > 1) text += fmt::format(" ({} tensors)", count);
  }
  return text;
}

}  // namespace

std::vector<std::string> EncoderLoading::lines() const {
  std::vector<std::string> lines;
  if (!missing.empty()) {
    lines.push_back(fmt::format("new weights: {} (the checkpoint has none)", fmt::join(missing, ", ")));
  }
  if (!replaced.empty()) {
    lines.push_back(
        fmt::format("new weights: {} (the checkpoint's are for {} labels)", fmt::join(replaced, ", "), labels_there));
  }
  if (!ignored.empty()) lines.push_back(fmt::format("not used of the checkpoint: {}", grouped(ignored)));
  return lines;
}

std::vector<WeightMap> encoder_weight_map(const ModelOptions& model, const ParameterStore& store,
                                          const std::vector<int64_t>& layers) {
  const Names names = names_of(model.type);
  const int64_t D = model.d_model, F = model.d_ff;
  MapWriter map(model, store);
  const std::string embeddings = names.prefix + "embeddings.";
  map.table("embedding", embeddings + "word_embeddings", model.vocab_size);
  map.table("positions", embeddings + "position_embeddings",
            model.context + (model.type == "roberta" ? kRobertaPositionOffset : 0));
  if (model.token_types > 0) map.table("types", embeddings + "token_type_embeddings", model.token_types);
  map.norm("embedding_norm", embeddings + "LayerNorm");
  for (int64_t l = 0; map.has(fmt::format("layers.{}.qkv.weight", l)); ++l) {
    BRISK_CHECK(layers.empty() || l < std::ssize(layers), "layer {} of {}", l, layers.size());
    const int64_t there = layers.empty() ? l : layers[static_cast<size_t>(l)];
    const std::string ours = fmt::format("layers.{}.", l);
    const std::string theirs = names.prefix + fmt::format(fmt::runtime(names.layer), there);
    map.linear(ours + "qkv", {theirs + names.query, theirs + names.key, theirs + names.value}, D, D);
    map.linear(ours + "attention_out", {theirs + names.attention_out}, D, D);
    map.norm(ours + "attention_norm", theirs + names.attention_norm);
    map.linear(ours + "up", {theirs + names.up}, F, D);
    map.linear(ours + "down", {theirs + names.down}, D, F);
    map.norm(ours + "feed_forward_norm", theirs + names.feed_forward_norm);
  }
  if (map.has("pooler.weight")) map.linear("pooler", {names.pooler}, D, D);
  if (const Parameter* classifier = store.find("classifier.weight"); classifier != nullptr) {
    map.linear("classifier", {names.classifier}, classifier->spec.rows, D);
  }
  if (map.has("mlm.bias")) {
    map.linear("mlm_dense", {names.mlm_dense}, D, D);
    map.norm("mlm_norm", names.mlm_norm);
    map.vector("mlm.bias", names.mlm_bias, model.vocab_size);
  }
  return map.take();
}

HuggingFaceEncoder::HuggingFaceEncoder(const std::string& folder)
    : path_(folder), config_(read_encoder_config(folder)), files_(folder) {}

const SafetensorsEntry* HuggingFaceEncoder::find(const std::string& name) const {
  for (const std::string& spelling : spellings(name, names_of(config_.model.type))) {
    if (const SafetensorsEntry* entry = files_.find(spelling); entry != nullptr) return entry;
  }
  return nullptr;
}

Head HuggingFaceEncoder::head() const {
  const Names names = names_of(config_.model.type);
  if (config_.head == Head::classifier && find(names.classifier + ".weight") != nullptr) return Head::classifier;
  return find(names.mlm_dense + ".weight") != nullptr ? Head::masked_words : Head::none;
}

bool HuggingFaceEncoder::has_pooler() const { return find(names_of(config_.model.type).pooler + ".weight") != nullptr; }

// The product with which masked words are found is the embedding's; files may hold it a second time.
void HuggingFaceEncoder::check_masked_words() const {
  check_activation_of_head(config_);
  const Names names = names_of(config_.model.type);
  const SafetensorsEntry* output = files_.find(names.mlm_table);
  const SafetensorsEntry* table = find(names.prefix + "embeddings.word_embeddings.weight");
  if (output == nullptr || table == nullptr || output->data == table->data) return;
  if (output->bytes == table->bytes && std::memcmp(output->data, table->data, static_cast<size_t>(table->bytes)) == 0) {
    return;
  }
  user_error(
      "{}: {} is not the token embedding; brisk's masked-LM head shares the token embedding (tie_word_embeddings): "
      "train a classifier from it, or fetch the folder again",
      path_, names.mlm_table);
}

WeightSource HuggingFaceEncoder::source(NonFinite nonfinite) const {
  return {path_, [this](const std::string& name) { return find(name); }, nonfinite};
}

void HuggingFaceEncoder::check(const ParameterStore& store) const {
  const std::string layer = names_of(config_.model.type).layer;
  const std::string before = layer.substr(0, layer.find("{}"));
  for (const std::string& prefix : {names_of(config_.model.type).prefix, std::string()}) {
    check_layers(files_.names(), prefix + before, config_.model.num_layers, path_);
  }
  check_weights(plan(store, {}).found, source(NonFinite::refuse));
}

HuggingFaceEncoder::Plan HuggingFaceEncoder::plan(const ParameterStore& store,
                                                  const std::vector<int64_t>& layers) const {
  Plan plan;
  auto& [loading, found, used, kept] = plan;
  // Outputs for something else are no classes to begin with.
  const bool foreign_classifier = config_.head == Head::other || !serves_problem(config_);
  for (WeightMap& entry : encoder_weight_map(config_.model, store, layers)) {
    bool missing = false, of_other_labels = false;
    for (const WeightPart& part : entry.parts) {
      const SafetensorsEntry* tensor = find(part.name);
      missing = missing || tensor == nullptr;
      const bool is_classifier = entry.parameter.starts_with("classifier.");
      if (tensor == nullptr || !is_classifier) continue;
      missing = missing || foreign_classifier;
      of_other_labels = tensor->shape != part.shape() && !tensor->shape.empty();
      if (of_other_labels && !missing) loading.labels_there = tensor->shape.front();
    }
    if (is_of_head(entry.parameter) && (missing || of_other_labels)) {
      (missing ? loading.missing : loading.replaced).push_back(entry.parameter);
      kept.insert(entry.parameter);
      continue;
    }
    for (const WeightPart& part : entry.parts) {
      if (const SafetensorsEntry* tensor = find(part.name); tensor != nullptr) used.insert(tensor->name);
    }
    found.push_back(std::move(entry));
  }
  return plan;
}

EncoderLoading HuggingFaceEncoder::load_into(ParameterStore& store, const std::vector<int64_t>& layers,
                                             NonFinite nonfinite) const {
  for (const int64_t layer : layers) {
    BRISK_CHECK(layer >= 0 && layer < config_.model.num_layers, "layer {} of {}", layer, config_.model.num_layers);
  }
  files_.advise_sequential();
  files_.check_bytes();
  const Names names = names_of(config_.model.type);
  auto [loading, found, used, kept] = plan(store, layers);
  if (store.find("mlm.bias") != nullptr) {
    check_masked_words();
    used.insert(names.mlm_table);
    used.insert(names.mlm_bias_again);
  }
  load_weights(found, source(nonfinite), store, kept);
  for (const std::string& name : files_.names()) {
    // A table of the numbers from 0 on, which files of before 2023 hold.
    if (!used.contains(name) && !name.ends_with("embeddings.position_ids")) loading.ignored.push_back(name);
  }
  return loading;
}

void write_huggingface_encoder(const std::string& folder, const HuggingFaceEncoderConfig& config,
                               const ParameterStore& store, const Tokenizer& tokenizer, SafetensorsType type,
                               int64_t max_length) {
  HuggingFaceEncoderConfig written = config;
  const Parameter* classifier = store.find("classifier.weight");
  written.head = classifier != nullptr               ? Head::classifier
                 : store.find("mlm.bias") != nullptr ? Head::masked_words
                                                     : Head::none;
  written.model.num_labels = classifier != nullptr ? classifier->spec.rows : 0;
  for (int64_t i = std::ssize(written.labels); i < written.model.num_labels; ++i) {
    written.labels.push_back(fmt::format("LABEL_{}", i));
  }
  const std::string text = to_json_text(written, type, tokenizer);
  const bool holds_files = file_exists(folder + "/config.json") || file_exists(folder + "/" + kWeightsFile);
  if (holds_files && !UnfinishedFolder::is(folder)) {
    user_error("{}: it holds a model already; choose another folder with --output", folder);
  }
  UnfinishedFolder unfinished(folder);
  SafetensorsWriter writer(folder + "/" + kWeightsFile);
  writer.add_metadata("format", "pt");
  for (const WeightMap& entry : encoder_weight_map(written.model, store)) {
    for (const StoredTensor& tensor : stored_tensors(entry, store, type)) {
      writer.add(tensor.name, tensor.type, tensor.shape, fill_from(tensor));
    }
  }
  writer.finish();
  save_tokenizer_folder(
      tokenizer, folder,
      {.token_types = written.model.type == "bert", .max_length = max_length > 0 ? max_length : written.model.context});
  write_file_atomically(folder + "/config.json", text);  // last: it makes the folder a model
  unfinished.finish();
}

}  // namespace brisk
