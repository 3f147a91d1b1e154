#include "hub/huggingface/image_classifier.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <numeric>

#include "base/error.h"
#include "base/files/files.h"
#include "base/files/unfinished_folder.h"
#include "hub/huggingface/image_encoder.h"
#include "hub/model_limits.h"
#include "image/preprocessor_config.h"

namespace brisk {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kProcessorFile = "preprocessor_config.json";

// Before the names of an encoder's tensors in a classifier's file.
std::string prefix_of(const std::string& model_type) {
  return model_type == "donut-swin" ? "donut." : model_type + ".";
}

bool is_of_image_head(std::string_view parameter) {
  return parameter.starts_with("classifier.") || parameter.starts_with("pooled_norm.");
}

std::vector<WeightMap> classifier_weight_map(const ModelOptions& model, const ParameterStore& store,
                                             const std::string& prefix, const std::vector<int64_t>& layers) {
  std::vector<WeightMap> map = image_encoder_weight_map(model.image_encoder, store, "", prefix, layers);
  const auto add = [&](const std::string& ours, const std::string& theirs) {
    const Parameter* parameter = store.find(ours);
    if (parameter == nullptr) return;
    const bool vector = parameter->spec.rows == 1 && !ours.ends_with(".weight");
    map.push_back({ours,
                   {{.name = theirs,
                     .outputs = vector ? parameter->spec.cols : parameter->spec.rows,
                     .inputs = vector ? 0 : parameter->spec.cols}}});
  };
  add("pooled_norm.gain", prefix + "pooler.layernorm.weight");
  add("pooled_norm.bias", prefix + "pooler.layernorm.bias");
  add("classifier.weight", "classifier.weight");
  add("classifier.bias", "classifier.bias");
  return map;
}

const char* class_of_images(const std::string& model_type) {
  return model_type == "vit" ? "ViT" : model_type == "beit" ? "Beit" : model_type == "swin" ? "Swin" : "DonutSwin";
}

}  // namespace

bool is_huggingface_image_encoder(const std::string& folder) {
  const std::string path = folder + "/config.json";
  return is_directory(folder) && file_exists(path) &&
         is_image_encoder_type(ConfigReader(path).text_or("model_type", ""));
}

HuggingFaceImageClassifier::HuggingFaceImageClassifier(const std::string& folder) : path_(folder), files_(folder) {
  const ConfigReader config(folder + "/config.json");
  read_image_encoder_config(config, model_);
  prefix_ = prefix_of(config.text_or("model_type", ""));
  model_.type = model_.image_encoder;
  model_.d_model = std::exchange(model_.encoder_d_model, 0);
  model_.num_layers = std::accumulate(model_.encoder_depths.begin(), model_.encoder_depths.end(),
                                      std::exchange(model_.encoder_layers, 0));
  model_.num_heads = model_.num_kv_heads =
      model_.image_encoder == "swin" ? model_.encoder_stage_heads.front() : model_.encoder_heads;
  model_.encoder_heads = 0;
  model_.d_ff = model_.image_encoder == "swin" ? 4 * model_.d_model : model_.encoder_d_ff;
  model_.encoder_d_ff = 0;
  model_.activation = "gelu_erf";
  model_.dropout = config.share_or("hidden_dropout_prob", 0);
  model_.attention_dropout = config.share_or("attention_probs_dropout_prob", 0);
  const std::string processor = folder + "/" + kProcessorFile;
  if (file_exists(processor)) {
    model_.image_processor = preprocessor_config_text(read_preprocessor_config(processor));
  }
  const std::vector<std::string> architectures = config.texts_or_none("architectures");
  classifies_ = architectures.empty() || architectures.front().ends_with("ForImageClassification") ||
                architectures.front().ends_with("ForImageClassificationWithTeacher");
  labels_ = config.numbered_texts_or_none("id2label");
  const int64_t count =
      labels_.empty() ? config.size_or("num_labels", 2, model_limits::kMostLabels) : std::ssize(labels_);
  for (int64_t i = std::ssize(labels_); i < count; ++i) labels_.push_back(fmt::format("LABEL_{}", i));
  model_.num_labels = count;
}

// A file that was saved without a head has names without a prefix.
const SafetensorsEntry* HuggingFaceImageClassifier::find(const std::string& name) const {
  const SafetensorsEntry* entry = files_.find(name);
  return entry == nullptr && name.starts_with(prefix_) ? files_.find(name.substr(prefix_.size())) : entry;
}

bool HuggingFaceImageClassifier::has_classifier() const { return classifies_ && find("classifier.weight") != nullptr; }

WeightSource HuggingFaceImageClassifier::source(NonFinite nonfinite) const {
  return {path_, [this](const std::string& name) { return find(name); }, nonfinite};
}

HuggingFaceImageClassifier::Plan HuggingFaceImageClassifier::plan(const ParameterStore& store,
                                                                  const std::vector<int64_t>& layers) const {
  Plan plan;
  auto& [loading, found, used, kept] = plan;
  for (WeightMap& entry : classifier_weight_map(model_, store, prefix_, layers)) {
    bool missing = false, of_other_labels = false;
    for (const WeightPart& part : entry.parts) {
      const SafetensorsEntry* tensor = find(part.name);
      const bool is_classifier = entry.parameter.starts_with("classifier.");
      missing = missing || tensor == nullptr || (is_classifier && !classifies_);
      if (missing || !is_classifier) continue;
      of_other_labels = tensor->shape != part.shape() && !tensor->shape.empty();
      if (of_other_labels) loading.labels_there = tensor->shape.front();
    }
    if (is_of_image_head(entry.parameter) && (missing || of_other_labels)) {
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

EncoderLoading HuggingFaceImageClassifier::load_into(ParameterStore& store, const std::vector<int64_t>& layers,
                                                     NonFinite nonfinite) const {
  files_.advise_sequential();
  files_.check_bytes();
  auto [loading, found, used, kept] = plan(store, layers);
  load_weights(found, source(nonfinite), store, kept);
  for (const std::string& name : files_.names()) {
    if (!used.contains(name) && !is_derived_tensor(name)) loading.ignored.push_back(name);
  }
  return loading;
}

void HuggingFaceImageClassifier::check(const ParameterStore& store) const {
  for (const std::string& prefix : {prefix_, std::string()}) {
    if (model_.image_encoder == "swin") {
      const auto stages = std::ssize(model_.encoder_depths);
      check_layers(files_.names(), prefix + "encoder.layers.", stages, path_);
      for (int64_t s = 0; s < stages; ++s) {
        check_layers(files_.names(), fmt::format("{}encoder.layers.{}.blocks.", prefix, s),
                     model_.encoder_depths[static_cast<size_t>(s)], path_);
      }
    } else {
      check_layers(files_.names(), prefix + "encoder.layer.", model_.num_layers, path_);
    }
  }
  check_weights(plan(store, {}).found, source(NonFinite::refuse));
}

void check_huggingface_image_classifier(const ModelOptions& model) {
  const Json json = image_encoder_json(model);
  if (json["model_type"] == "donut-swin" && model.num_labels > 0) {
    user_error("model.encoder_final_norm = false: Hugging Face's Swin has a final norm before its classifier");
  }
}

void write_huggingface_image_classifier(const std::string& folder, const ModelOptions& model,
                                        const std::vector<std::string>& labels, const ParameterStore& store,
                                        SafetensorsType type) {
  check_huggingface_image_classifier(model);
  Json json = image_encoder_json(model);
  const auto model_type = json["model_type"].get<std::string>();
  const Parameter* classifier = store.find("classifier.weight");
  json["architectures"] = {
      fmt::format("{}{}", class_of_images(model_type), classifier != nullptr ? "ForImageClassification" : "Model")};
  if (classifier != nullptr) {
    Json::object_t names, numbers;
    for (int64_t i = 0; i < classifier->spec.rows; ++i) {
      const std::string label = i < std::ssize(labels) ? labels[static_cast<size_t>(i)] : fmt::format("LABEL_{}", i);
      names.emplace_back(std::to_string(i), label);
      numbers.emplace_back(label, i);
    }
    json["id2label"] = std::move(names);
    json["label2id"] = std::move(numbers);
    json["problem_type"] = "single_label_classification";
  }
  json["torch_dtype"] = type == SafetensorsType::f32    ? "float32"
                        : type == SafetensorsType::bf16 ? "bfloat16"
                                                        : "float16";
  const bool holds_files = file_exists(folder + "/config.json") || file_exists(folder + "/" + kWeightsFile);
  if (holds_files && !UnfinishedFolder::is(folder)) {
    user_error("{}: it holds a model already; choose another folder with --output", folder);
  }
  UnfinishedFolder unfinished(folder);
  SafetensorsWriter writer(folder + "/" + kWeightsFile);
  writer.add_metadata("format", "pt");
  for (const WeightMap& entry :
       classifier_weight_map(model, store, classifier != nullptr ? prefix_of(model_type) : "", {})) {
    for (const StoredTensor& tensor : stored_tensors(entry, store, type)) {
      writer.add(tensor.name, tensor.type, tensor.shape, fill_from(tensor));
    }
  }
  writer.finish();
  write_file_atomically(folder + "/" + kProcessorFile, model.image_processor);
  write_file_atomically(folder + "/config.json", json.dump(2, ' ', false, Json::error_handler_t::replace) +
                                                     "\n");  // last: it makes the folder a model
  unfinished.finish();
}

}  // namespace brisk
