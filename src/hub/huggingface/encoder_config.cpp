#include "hub/huggingface/encoder_config.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/files.h"
#include "base/text/printable.h"
#include "hub/huggingface/config_reader.h"
#include "hub/model_limits.h"

namespace brisk {

namespace {

using Json = nlohmann::ordered_json;
using Head = HuggingFaceEncoderConfig::Head;
using namespace model_limits;

constexpr double kDistilbertEpsilon = 1e-12;  // not in its config.json: its code has no other
constexpr int64_t kUsualLabels = 2;           // where a classifier says nothing

bool is_encoder_type(const std::string& type) { return type == "bert" || type == "distilbert" || type == "roberta"; }

// What brisk calls these, and back.
struct ActivationWords {
  const char *there, *here;
};
constexpr ActivationWords kActivations[] = {{"gelu", "gelu_erf"},  {"gelu_python", "gelu_erf"},
                                            {"gelu_new", "gelu"},  {"gelu_pytorch_tanh", "gelu"},
                                            {"gelu_fast", "gelu"}, {"relu", "relu"}};

std::string activation_here(const ConfigReader& reader, const char* key) {
  const std::string word = reader.text_or(key, "gelu");
  for (const ActivationWords& words : kActivations) {
    if (word == words.there) return words.here;
  }
  reader.require(key, false, "gelu, gelu_new or relu");
  return "";
}

std::string activation_there(const std::string& word) {
  for (const ActivationWords& words : kActivations) {
    if (word == words.here) return words.there;
  }
  user_error("model.activation = {}: Hugging Face encoders have gelu_erf, gelu or relu", word);
}

void read_distilbert(const ConfigReader& reader, ModelOptions& model) {
  model.d_model = reader.size("dim", kWidest);
  model.num_layers = reader.size("n_layers", kMostLayers);
  model.num_heads = reader.size("n_heads", kMostHeads);
  model.d_ff = reader.size_or("hidden_dim", 4 * model.d_model, kWidestInside);
  model.activation = activation_here(reader, "activation");
  model.dropout = reader.share_or("dropout", 0.1);
  model.attention_dropout = reader.share_or("attention_dropout", 0.1);
  model.classifier_dropout = reader.share_or("seq_classif_dropout", 0.2);
  model.context = reader.size_or("max_position_embeddings", 512, kLongestContext);
  model.norm_epsilon = kDistilbertEpsilon;
  model.token_types = 0;
}

void read_bert(const ConfigReader& reader, ModelOptions& model) {
  const bool roberta = model.type == "roberta";
  model.d_model = reader.size("hidden_size", kWidest);
  model.num_layers = reader.size("num_hidden_layers", kMostLayers);
  model.num_heads = reader.size("num_attention_heads", kMostHeads);
  model.d_ff = reader.size("intermediate_size", kWidestInside);
  model.activation = activation_here(reader, "hidden_act");
  model.dropout = reader.share_or("hidden_dropout_prob", 0.1);
  model.attention_dropout = reader.share_or("attention_probs_dropout_prob", 0.1);
  model.classifier_dropout = reader.share_or("classifier_dropout", model.dropout);
  model.norm_epsilon = reader.number_or("layer_norm_eps", 1e-12, {.above = 0, .most = kLargestEpsilon});
  model.token_types = reader.size_or("type_vocab_size", 2, kMostTokenTypes);
  model.context = reader.size_or("max_position_embeddings", 512, kLongestContext);
  if (roberta) {
    const Json* pad = reader.find("pad_token_id");
    reader.require("pad_token_id", pad == nullptr || *pad == kRobertaPositionOffset - 1,
                   "1, from which positions count");
    reader.require("max_position_embeddings", model.context > kRobertaPositionOffset, "3 and more");
    model.context -= kRobertaPositionOffset;
  }
  reader.require("position_embedding_type", reader.text_or("position_embedding_type", "absolute") == "absolute",
                 "absolute");
  reader.require("is_decoder", !reader.boolean_or("is_decoder", false), "false");
  reader.require("add_cross_attention", !reader.boolean_or("add_cross_attention", false), "false");
}

Head head_of(const ConfigReader& reader) {
  const std::vector<std::string> architectures = reader.texts_or_none("architectures");
  if (architectures.empty()) return Head::unsaid;
  const std::string& name = architectures.front();
  if (name.ends_with("ForSequenceClassification")) return Head::classifier;
  if (name.ends_with("ForMaskedLM") || name.ends_with("ForPreTraining")) return Head::masked_words;
  return name.ends_with("Model") ? Head::none : Head::other;
}

const char* class_of(const std::string& type) {
  return type == "bert" ? "Bert" : type == "distilbert" ? "DistilBert" : "Roberta";
}

const char* word_for(SafetensorsType type) {
  return type == SafetensorsType::f32 ? "float32" : type == SafetensorsType::bf16 ? "bfloat16" : "float16";
}

}  // namespace

bool is_huggingface_encoder(const std::string& folder) {
  const std::string path = folder + "/config.json";
  return is_directory(folder) && file_exists(path) && is_encoder_type(ConfigReader(path).text_or("model_type", ""));
}

HuggingFaceEncoderConfig read_encoder_config(const std::string& folder) {
  return read_encoder_config(ConfigReader(folder + "/config.json"));
}

HuggingFaceEncoderConfig read_encoder_config(const ConfigReader& reader) {
  HuggingFaceEncoderConfig config;
  ModelOptions& model = config.model;
  model.type = reader.text_or("model_type", "");
  reader.require("model_type", is_encoder_type(model.type), "bert, distilbert or roberta");
  model.vocab_size = reader.size("vocab_size", kLargestVocabulary);
  if (model.type == "distilbert") {
    read_distilbert(reader, model);
  } else {
    read_bert(reader, model);
  }
  if (model.d_model % model.num_heads != 0) {
    user_error("{}: a width of {} in {} heads: expected heads of equal width; fetch the file again", reader.path(),
               model.d_model, model.num_heads);
  }
  model.num_kv_heads = model.num_heads;
  config.head = head_of(reader);
  config.problem_type = reader.text_or("problem_type", "");
  if (config.head == Head::classifier) {
    config.labels = reader.numbered_texts_or_none("id2label");
    // A file that names no label has two, or as many as its older key says.
    const int64_t count = config.labels.empty() ? reader.size_or("num_labels", kUsualLabels, kMostLabels) : 0;
    for (int64_t i = 0; i < count; ++i) config.labels.push_back(fmt::format("LABEL_{}", i));
    model.num_labels = std::ssize(config.labels);
  }
  return config;
}

bool serves_problem(const HuggingFaceEncoderConfig& config) {
  if (config.head != Head::classifier) return true;
  const bool is_single = config.problem_type.empty() || config.problem_type == "single_label_classification";
  return is_single && config.model.num_labels != 1;
}

void check_problem(const HuggingFaceEncoderConfig& config, const std::string& path) {
  if (serves_problem(config)) return;
  const std::string found = config.model.num_labels == 1 && config.problem_type.empty()
                                ? "its classifier has one output, which is a regression"
                                : fmt::format("problem_type is \"{}\"", printable(config.problem_type));
  user_error(
      "{}/config.json: {}; brisk serves single_label_classification, one class of several: train such a classifier "
      "from it ({{\"model\": {{\"from\": \"{}\"}}}} in a job)",
      path, found, path);
}

void check_activation_of_head(const HuggingFaceEncoderConfig& config) {
  if (config.model.type != "roberta" || config.model.activation == "gelu_erf") return;
  user_error(
      "model.activation = {}: RoBERTa's masked-LM head always uses gelu_erf; use gelu_erf, or a "
      "model of type bert",
      config.model.activation);
}

std::string to_json_text(const HuggingFaceEncoderConfig& config, SafetensorsType weights, const Tokenizer& tokenizer) {
  const ModelOptions& model = config.model;
  const bool distilbert = model.type == "distilbert", roberta = model.type == "roberta";
  const double attention_dropout = model.attention_dropout >= 0 ? model.attention_dropout : model.dropout;
  const double classifier_dropout = model.classifier_dropout >= 0 ? model.classifier_dropout : model.dropout;
  BRISK_CHECK(is_encoder_type(model.type), "{}", model.type);
  if (config.head == Head::masked_words) check_activation_of_head(config);
  Json json;
  const char* head = config.head == Head::classifier     ? "ForSequenceClassification"
                     : config.head == Head::masked_words ? "ForMaskedLM"
                                                         : "Model";
  json["architectures"] = {std::string(class_of(model.type)) + head};
  json["model_type"] = model.type;
  json["vocab_size"] = model.vocab_size;
  if (distilbert) {
    if (model.norm_epsilon != kDistilbertEpsilon || model.token_types > 0) {
      user_error(
          "model.norm_epsilon = {}, model.token_types = {}: Hugging Face's DistilBERT has {} and none; a model of type "
          "bert can have others",
          model.norm_epsilon, model.token_types, kDistilbertEpsilon);
    }
    json["dim"] = model.d_model;
    json["n_layers"] = model.num_layers;
    json["n_heads"] = model.num_heads;
    json["hidden_dim"] = model.d_ff;
    json["activation"] = activation_there(model.activation);
    json["dropout"] = model.dropout;
    json["attention_dropout"] = attention_dropout;
    json["seq_classif_dropout"] = classifier_dropout;
    json["max_position_embeddings"] = model.context;
    json["sinusoidal_pos_embds"] = false;
  } else {
    json["hidden_size"] = model.d_model;
    json["num_hidden_layers"] = model.num_layers;
    json["num_attention_heads"] = model.num_heads;
    json["intermediate_size"] = model.d_ff;
    json["hidden_act"] = activation_there(model.activation);
    json["hidden_dropout_prob"] = model.dropout;
    json["attention_probs_dropout_prob"] = attention_dropout;
    json["classifier_dropout"] = classifier_dropout;
    json["max_position_embeddings"] = model.context + (roberta ? kRobertaPositionOffset : 0);
    json["type_vocab_size"] = model.token_types;
    json["layer_norm_eps"] = model.norm_epsilon;
    json["position_embedding_type"] = "absolute";
  }
  json["initializer_range"] = 0.02;
  json["tie_word_embeddings"] = true;
  // RoBERTa counts its positions from this id, whatever the vocabulary says.
  const std::optional<TokenId> pad =
      tokenizer.token_id("[PAD]") ? tokenizer.token_id("[PAD]") : tokenizer.token_id("<pad>");
  json["pad_token_id"] = roberta ? kRobertaPositionOffset - 1 : pad ? int64_t{*pad} : 0;
  if (config.head == Head::classifier) {
    BRISK_CHECK(std::ssize(config.labels) == model.num_labels, "{} labels of {}", config.labels.size(),
                model.num_labels);
    Json::object_t names, numbers;  // whose own [] compares a key with all before it
    for (size_t i = 0; i < config.labels.size(); ++i) {
      names.emplace_back(std::to_string(i), config.labels[i]);
      numbers.emplace_back(config.labels[i], i);
    }
    json["id2label"] = std::move(names);
    json["label2id"] = std::move(numbers);
    json["problem_type"] = config.problem_type.empty() ? "single_label_classification" : config.problem_type;
  }
  json["torch_dtype"] = word_for(weights);
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace brisk
