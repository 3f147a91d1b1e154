#include "hub/huggingface/encoder.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/files.h"
#include "support/scratch_folder.h"
#include "tensor/device.h"

namespace brisk {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using Head = HuggingFaceEncoderConfig::Head;
using test::contents_of;
using test::has;
using test::message_of;
using test::put_contents;
using test::ScratchFolder;

std::string golden(const std::string& name) { return std::string(BRISK_GOLDEN) + "/encoders/" + name; }

// The parameters of an encoder, by the names that models/encoder.h gives them, each full of one number.
void declare(ParameterStore& store, const ModelOptions& model, Head head, int64_t labels) {
  const int64_t D = model.d_model, F = model.d_ff;
  const auto matrix = [&](const std::string& name, int64_t rows, int64_t cols) {
    store.add({.name = name + ".weight", .rows = rows, .cols = cols});
  };
  const auto linear = [&](const std::string& name, int64_t outputs, int64_t inputs) {
    matrix(name, outputs, inputs);
    store.add({.name = name + ".bias", .cols = outputs});
  };
  const auto norm = [&](const std::string& name) {
    store.add({.name = name + ".gain", .cols = D});
    store.add({.name = name + ".bias", .cols = D});
  };
  matrix("embedding", model.vocab_size, D);
  matrix("positions", model.context + (model.type == "roberta" ? 2 : 0), D);
  if (model.token_types > 0) matrix("types", model.token_types, D);
  norm("embedding_norm");
  for (int64_t l = 0; l < model.num_layers; ++l) {
    const std::string layer = fmt::format("layers.{}.", l);
    linear(layer + "qkv", 3 * D, D);
    linear(layer + "attention_out", D, D);
    norm(layer + "attention_norm");
    linear(layer + "up", F, D);
    linear(layer + "down", D, F);
    norm(layer + "feed_forward_norm");
  }
  if (head == Head::classifier) {
    linear("pooler", D, D);
    linear("classifier", labels, D);
  } else if (head == Head::masked_words) {
    linear("mlm_dense", D, D);
    norm("mlm_norm");
    store.add({.name = "mlm.bias", .cols = model.vocab_size});
  }
  store.allocate(cpu_device(), {}, DType::f32, ParameterStore::Purpose::inference);
  store.initialise(1);
}

std::vector<float> numbers_of(const ParameterStore& store, const std::string& name) {
  const Parameter* parameter = store.find(name);
  if (parameter == nullptr) return {};
  const auto* first = static_cast<const float*>(parameter->master.data);
  return {first, first + parameter->count()};
}

std::vector<float> numbers_of(const WeightFiles& files, const std::string& name) {
  const SafetensorsEntry* entry = files.find(name);
  if (entry == nullptr || entry->type != SafetensorsType::f32) return {};
  std::vector<float> numbers(static_cast<size_t>(entry->count()));
  std::memcpy(numbers.data(), entry->data, static_cast<size_t>(entry->bytes));
  return numbers;
}

std::vector<float> joined(const WeightFiles& files, const std::vector<std::string>& names) {
  std::vector<float> numbers;
  for (const std::string& name : names) {
    const std::vector<float> part = numbers_of(files, name);
    EXPECT_FALSE(part.empty()) << name;
    numbers.insert(numbers.end(), part.begin(), part.end());
  }
  return numbers;
}

TEST(EncoderConfig, OfBertSaysWhatTheModelIs) {
  EXPECT_TRUE(is_huggingface_encoder(golden("bert")));
  EXPECT_FALSE(is_huggingface_encoder(std::string(BRISK_GOLDEN) + "/hub/gpt2"));
  EXPECT_FALSE(is_huggingface_encoder("/nowhere"));
  const HuggingFaceEncoderConfig config = read_encoder_config(golden("bert"));
  EXPECT_EQ(config.model.type, "bert");
  EXPECT_EQ(config.model.d_model, 16);
  EXPECT_EQ(config.model.num_layers, 2);
  EXPECT_EQ(config.model.num_heads, 4);
  EXPECT_EQ(config.model.d_ff, 24);
  EXPECT_EQ(config.model.vocab_size, 24);
  EXPECT_EQ(config.model.context, 20);
  EXPECT_EQ(config.model.token_types, 2);
  EXPECT_EQ(config.model.activation, "gelu_erf");
  EXPECT_EQ(config.model.norm_epsilon, 1e-12);
  EXPECT_EQ(config.model.dropout, 0.1);
  EXPECT_EQ(config.model.classifier_dropout, 0.1) << "null: as the others";
  EXPECT_EQ(config.model.num_labels, 3);
  EXPECT_EQ(config.head, Head::classifier);
  EXPECT_EQ(config.labels, (std::vector<std::string>{"negative", "neutral", "positive"}));

  const HuggingFaceEncoderConfig bare = read_encoder_config(golden("bert_bare"));
  EXPECT_EQ(bare.head, Head::none);
  EXPECT_EQ(bare.model.activation, "gelu");
  EXPECT_EQ(bare.model.num_labels, 0);
  EXPECT_EQ(read_encoder_config(golden("bert_mlm")).head, Head::masked_words);
  EXPECT_EQ(read_encoder_config(golden("bert_pretraining_bin")).head, Head::masked_words);
}

TEST(EncoderConfig, OfDistilbertAndRobertaHasTheirOwnWords) {
  const HuggingFaceEncoderConfig distilbert = read_encoder_config(golden("distilbert"));
  EXPECT_EQ(distilbert.model.type, "distilbert");
  EXPECT_EQ(distilbert.model.d_ff, 24);
  EXPECT_EQ(distilbert.model.token_types, 0);
  EXPECT_EQ(distilbert.model.classifier_dropout, 0.2);
  EXPECT_EQ(distilbert.labels, (std::vector<std::string>{"LABEL_0", "LABEL_1"}));
  const HuggingFaceEncoderConfig roberta = read_encoder_config(golden("roberta"));
  EXPECT_EQ(roberta.model.context, 20) << "two of its 22 rows are never used";
  EXPECT_EQ(roberta.model.token_types, 1);
  EXPECT_EQ(roberta.model.norm_epsilon, 1e-5);
}

TEST(EncoderConfig, OfAnotherKindIsRefusedByName) {
  const ScratchFolder folder;
  const Json good = Json::parse(contents_of(golden("bert") + "/config.json"));
  const auto expect = [&](const char* key, const Json& value, const std::string& part) {
    Json json = good;
    json[key] = value;
    put_contents(folder / "config.json", json.dump());
    const std::string message = message_of<UserError>([&] { read_encoder_config(folder.path()); });
    EXPECT_TRUE(has(message, part)) << "expected '" << part << "' in '" << message << "'";
    EXPECT_TRUE(has(message, folder / "config.json")) << message;
  };
  expect("model_type", "electra", "model_type is \"electra\", which brisk does not support; it supports bert");
  expect("position_embedding_type", "relative_key", "position_embedding_type is \"relative_key\"");
  expect("is_decoder", true, "is_decoder is true");
  expect("hidden_act", "silu", "it supports gelu, gelu_new or relu");
  expect("num_attention_heads", 5, "a width of 16 in 5 heads");
  expect("hidden_size", "16", "hidden_size is \"16\", expected an integer");
  expect("hidden_dropout_prob", 1, "hidden_dropout_prob is 1, expected a number from 0 on, below 1");
  expect("id2label", Json{{"0", "a"}, {"2", "b"}}, "every number from \"0\" on");
  expect("id2label", Json{{"0", "a"}, {"00", "b"}}, "every number from \"0\" on");
  expect("id2label", Json{{"0", 1}}, "every number from \"0\" on");
  expect("id2label", Json{{"0", "a"}, {"1", "b"}, {"2", "a"}}, "id2label gives 0 and 2 the same name, \"a\"");
  expect("num_hidden_layers", 40000, "num_hidden_layers is 40000, expected an integer from 1 to 1000");
  expect("vocab_size", 0, "vocab_size is 0, expected an integer from 1 to 16777216");
  expect("vocab_size", 1e30, "vocab_size is 1e+30, expected an integer");
  expect("layer_norm_eps", -1, "layer_norm_eps is -1, expected a number above 0 and at most 1");
  expect("layer_norm_eps", "1e-5", "layer_norm_eps is \"1e-5\", expected a number above 0 and at most 1");
  expect("architectures", "BertModel", "expected an array of strings");
  Json json = Json::parse(contents_of(golden("roberta") + "/config.json"));
  json["pad_token_id"] = 0;
  put_contents(folder / "config.json", json.dump());
  EXPECT_TRUE(has(message_of<UserError>([&] { read_encoder_config(folder.path()); }), "pad_token_id is 0"));
}

TEST(EncoderConfig, OfAClassifierOfAnotherKindSaysWhatBriskServes) {
  const ScratchFolder folder;
  const Json good = Json::parse(contents_of(golden("bert") + "/config.json"));
  const auto complaint_of = [&](const Json& json) {
    put_contents(folder / "config.json", json.dump());
    return message_of<UserError>([&] { check_problem(read_encoder_config(folder.path()), folder.path()); });
  };
  EXPECT_EQ(complaint_of(good), "");
  for (const char* problem : {"multi_label_classification", "regression", "something_new"}) {
    Json json = good;
    json["problem_type"] = problem;
    EXPECT_TRUE(has(complaint_of(json), fmt::format("problem_type is \"{}\"; brisk serves single_label", problem)));
  }
  Json json = good;
  json["id2label"] = {{"0", "score"}};
  EXPECT_TRUE(has(complaint_of(json), "its classifier has one output, which is a regression"));
}

TEST(EncoderModel, OfBertStandsWhereItsNamesSay) {
  const HuggingFaceEncoder model(golden("bert"));
  ParameterStore store;
  declare(store, model.config().model, Head::classifier, 3);
  const EncoderLoading loading = model.load_into(store);
  EXPECT_TRUE(loading.lines().empty()) << fmt::format("{}", fmt::join(loading.lines(), "\n"));
  const WeightFiles files(golden("bert"));
  const std::string layer = "bert.encoder.layer.1.";
  EXPECT_EQ(numbers_of(store, "layers.1.qkv.weight"),
            joined(files, {layer + "attention.self.query.weight", layer + "attention.self.key.weight",
                           layer + "attention.self.value.weight"}));
  EXPECT_EQ(numbers_of(store, "layers.1.qkv.bias"),
            joined(files, {layer + "attention.self.query.bias", layer + "attention.self.key.bias",
                           layer + "attention.self.value.bias"}));
  for (const auto& [ours, theirs] : std::vector<std::pair<std::string, std::string>>{
           {"embedding.weight", "bert.embeddings.word_embeddings.weight"},
           {"positions.weight", "bert.embeddings.position_embeddings.weight"},
           {"types.weight", "bert.embeddings.token_type_embeddings.weight"},
           {"embedding_norm.gain", "bert.embeddings.LayerNorm.weight"},
           {"embedding_norm.bias", "bert.embeddings.LayerNorm.bias"},
           {"layers.1.attention_out.weight", layer + "attention.output.dense.weight"},
           {"layers.1.attention_norm.gain", layer + "attention.output.LayerNorm.weight"},
           {"layers.1.up.weight", layer + "intermediate.dense.weight"},
           {"layers.1.down.bias", layer + "output.dense.bias"},
           {"layers.1.feed_forward_norm.bias", layer + "output.LayerNorm.bias"},
           {"pooler.weight", "bert.pooler.dense.weight"},
           {"classifier.weight", "classifier.weight"},
           {"classifier.bias", "classifier.bias"}}) {
    EXPECT_EQ(numbers_of(store, ours), joined(files, {theirs})) << ours;
  }
}

// What is read and written again has the same tensors under the same names, and loads as the same model.
TEST(EncoderModel, IsTheSameWhenWrittenAgain) {
  for (const std::string name :
       {"bert", "bert_mlm", "bert_pretraining_bin", "distilbert", "distilbert_mlm", "roberta", "roberta_mlm"}) {
    const ScratchFolder scratch;
    const HuggingFaceEncoder model(golden(name));
    ParameterStore store, again;
    declare(store, model.config().model, model.config().head, model.config().model.num_labels);
    model.load_into(store);
    const auto tokenizer = load_tokenizer(golden(name));
    write_huggingface_encoder(scratch / "out", model.config(), store, *tokenizer, SafetensorsType::f32);

    const HuggingFaceEncoder written(scratch / "out");
    declare(again, written.config().model, written.config().head, written.config().model.num_labels);
    EXPECT_TRUE(written.load_into(again).lines().empty()) << name;
    for (const auto& parameter : store.all()) {
      EXPECT_EQ(numbers_of(again, parameter->spec.name), numbers_of(store, parameter->spec.name)) << name;
    }
    EXPECT_EQ(written.config().head, model.config().head) << name;
    EXPECT_EQ(written.config().labels, model.config().labels) << name;
    const auto same = [&](auto ModelOptions::*field) {
      EXPECT_EQ(written.config().model.*field, model.config().model.*field) << name;
    };
    same(&ModelOptions::type), same(&ModelOptions::d_model), same(&ModelOptions::num_layers);
    same(&ModelOptions::num_heads), same(&ModelOptions::d_ff), same(&ModelOptions::vocab_size);
    same(&ModelOptions::context), same(&ModelOptions::token_types), same(&ModelOptions::activation);
    same(&ModelOptions::norm_epsilon), same(&ModelOptions::dropout), same(&ModelOptions::attention_dropout);
    same(&ModelOptions::classifier_dropout), same(&ModelOptions::num_labels);
    if (name.find("bin") != std::string::npos || name == "roberta") continue;  // other names, other precision
    const WeightFiles before(golden(name)), after(scratch / "out");
    EXPECT_EQ(after.names(), before.names()) << name;
    for (const std::string& tensor : after.names()) {
      EXPECT_EQ(after.find(tensor)->shape, before.find(tensor)->shape) << tensor;
      EXPECT_EQ(numbers_of(after, tensor), numbers_of(before, tensor)) << tensor;
    }
    EXPECT_EQ(load_tokenizer(scratch / "out")->fingerprint(), tokenizer->fingerprint()) << name;
  }
}

TEST(EncoderModel, OldNamesShardsAndExtraHeadsAreUnderstood) {
  const HuggingFaceEncoder model(golden("bert_pretraining_bin"));
  ParameterStore store;
  declare(store, model.config().model, Head::masked_words, 0);
  const EncoderLoading loading = model.load_into(store);
  EXPECT_TRUE(loading.missing.empty());
  EXPECT_EQ(loading.ignored, (std::vector<std::string>{"bert.pooler.dense.bias", "bert.pooler.dense.weight",
                                                       "cls.seq_relationship.bias", "cls.seq_relationship.weight"}))
      << "neither the table of positions nor the second copy of the embedding";
  const WeightFiles files(golden("bert_pretraining_bin"));
  EXPECT_EQ(numbers_of(store, "mlm_norm.gain"), joined(files, {"cls.predictions.transform.LayerNorm.gamma"}));
  EXPECT_EQ(numbers_of(store, "layers.0.attention_norm.bias"),
            joined(files, {"bert.encoder.layer.0.attention.output.LayerNorm.beta"}));
}

TEST(EncoderModel, AMissingHeadKeepsItsNewWeightsAndIsNamed) {
  const HuggingFaceEncoder model(golden("bert_bare"));
  ParameterStore store, fresh;
  declare(store, model.config().model, Head::classifier, 4);
  declare(fresh, model.config().model, Head::classifier, 4);
  const EncoderLoading loading = model.load_into(store);
  EXPECT_EQ(loading.missing, (std::vector<std::string>{"classifier.weight", "classifier.bias"}));
  EXPECT_TRUE(loading.replaced.empty());
  ASSERT_EQ(loading.lines().size(), 1u);
  EXPECT_EQ(loading.lines().front(), "new weights: classifier.weight, classifier.bias (the checkpoint has none)");
  EXPECT_EQ(numbers_of(store, "classifier.weight"), numbers_of(fresh, "classifier.weight"));
  EXPECT_EQ(numbers_of(store, "pooler.weight"), joined(WeightFiles(golden("bert_bare")), {"pooler.dense.weight"}));

  // A model of masked words has no classifier, and the other way round.
  const HuggingFaceEncoder masked(golden("distilbert_mlm"));
  ParameterStore classifier;
  declare(classifier, masked.config().model, Head::classifier, 2);
  const EncoderLoading other = masked.load_into(classifier);
  EXPECT_EQ(other.missing.size(), 4u);
  EXPECT_EQ(other.lines().back(),
            "not used of the checkpoint: vocab_layer_norm.bias, vocab_layer_norm.weight, vocab_projector.bias, "
            "vocab_transform.bias, vocab_transform.weight");
}

TEST(EncoderModel, AHeadOfAnotherNumberOfLabelsIsReplacedAndSaid) {
  for (const std::string name : {"bert", "distilbert", "roberta"}) {
    const HuggingFaceEncoder model(golden(name));
    ParameterStore store;
    declare(store, model.config().model, Head::classifier, 7);
    const EncoderLoading loading = model.load_into(store);
    EXPECT_EQ(loading.replaced, (std::vector<std::string>{"classifier.weight", "classifier.bias"})) << name;
    EXPECT_EQ(loading.labels_there, model.config().model.num_labels);
    EXPECT_TRUE(loading.missing.empty()) << "its pooler fits";
    EXPECT_TRUE(has(loading.lines().front(),
                    fmt::format("the checkpoint's are for {} labels", model.config().model.num_labels)));
  }
}

TEST(EncoderModel, ClassesOfTokensAreNoClassesOfTexts) {
  const ScratchFolder scratch;
  fs::copy(golden("bert"), scratch / "model");
  Json config = Json::parse(contents_of(scratch / "model/config.json"));
  config["architectures"] = {"BertForTokenClassification"};
  put_contents(scratch / "model/config.json", config.dump());
  const HuggingFaceEncoder model(scratch / "model");
  ParameterStore store;
  declare(store, model.config().model, Head::classifier, 3);
  EXPECT_EQ(model.load_into(store).missing, (std::vector<std::string>{"classifier.weight", "classifier.bias"}));
}

TEST(EncoderModel, WithAnOutputTableOfItsOwnIsRefusedForMaskedWordsAlone) {
  const ScratchFolder scratch;
  fs::copy(golden("bert_mlm"), scratch / "model");
  const SafetensorsFile tied(golden("bert_mlm") + "/model.safetensors");
  SafetensorsWriter writer(scratch / "model/model.safetensors");
  for (const SafetensorsEntry& entry : tied.entries()) writer.add(entry.name, entry.type, entry.shape, entry.data);
  const std::vector<float> other(24 * 16, 1.0f);
  writer.add("cls.predictions.decoder.weight", SafetensorsType::f32, {24, 16}, other.data());
  writer.finish();
  const HuggingFaceEncoder model(scratch / "model");
  ParameterStore masked, classifier;
  declare(masked, model.config().model, Head::masked_words, 0);
  EXPECT_TRUE(has(message_of<UserError>([&] { model.load_into(masked); }),
                  "cls.predictions.decoder.weight is not the token embedding"));
  declare(classifier, model.config().model, Head::classifier, 2);
  EXPECT_EQ(model.load_into(classifier).missing.size(), 4u);
}

TEST(EncoderModel, AShorterOneBeginsAsChosenLayersOfALongerOne) {
  const HuggingFaceEncoder model(golden("bert"));
  ModelOptions student = model.config().model;
  student.num_layers = 1;
  ParameterStore store;
  declare(store, student, Head::classifier, 3);
  model.load_into(store, {1});
  EXPECT_EQ(numbers_of(store, "layers.0.up.weight"),
            joined(WeightFiles(golden("bert")), {"bert.encoder.layer.1.intermediate.dense.weight"}));
}

TEST(EncoderModel, WithoutAWeightOfItsBodyIsRefusedAndNothingChanges) {
  const ScratchFolder scratch;
  fs::copy(golden("bert"), scratch / "model");
  Json config = Json::parse(contents_of(scratch / "model/config.json"));
  config["num_hidden_layers"] = 3;
  put_contents(scratch / "model/config.json", config.dump());
  const HuggingFaceEncoder model(scratch / "model");
  ParameterStore store;
  declare(store, model.config().model, Head::classifier, 3);
  const std::vector<float> before = numbers_of(store, "embedding.weight");
  const std::string message = message_of<UserError>([&] { model.load_into(store); });
  EXPECT_TRUE(has(message, "it has no tensor 'bert.encoder.layer.2.attention.self.query.weight'")) << message;
  EXPECT_EQ(numbers_of(store, "embedding.weight"), before);

  config["model_type"] = "distilbert";
  for (const auto& [key, value] : {std::pair("dim", 16), {"n_layers", 2}, {"n_heads", 4}}) config[key] = value;
  put_contents(scratch / "model/config.json", config.dump());
  const HuggingFaceEncoder other(scratch / "model");
  ParameterStore distilbert;
  declare(distilbert, other.config().model, Head::classifier, 3);
  EXPECT_TRUE(has(message_of<UserError>([&] { other.load_into(distilbert); }), "it has no tensor 'distilbert."));
}

TEST(EncoderModel, IsWrittenInHalfPrecisionTooAndNeverOverAnother) {
  const ScratchFolder scratch;
  const HuggingFaceEncoder model(golden("bert"));
  ParameterStore store;
  declare(store, model.config().model, Head::classifier, 3);
  model.load_into(store);
  const auto tokenizer = load_tokenizer(golden("bert"));
  write_huggingface_encoder(scratch / "out", model.config(), store, *tokenizer, SafetensorsType::bf16);
  EXPECT_EQ(WeightFiles(scratch / "out").find("classifier.weight")->type, SafetensorsType::bf16);
  const Json json = Json::parse(contents_of(scratch / "out/config.json"));
  EXPECT_EQ(json.at("torch_dtype"), "bfloat16");
  EXPECT_EQ(json.at("label2id").at("positive"), 2);
  EXPECT_EQ(json.at("problem_type"), "single_label_classification");
  EXPECT_EQ(json.at("pad_token_id"), 0);
  const std::string message = message_of<UserError>(
      [&] { write_huggingface_encoder(scratch / "out", model.config(), store, *tokenizer, SafetensorsType::f32); });
  EXPECT_TRUE(has(message, "it holds a model already")) << message;
}

TEST(EncoderModel, IsWrittenAgainWhereItWasNotFinished) {
  const ScratchFolder scratch;
  const HuggingFaceEncoder model(golden("bert"));
  ParameterStore store;
  declare(store, model.config().model, Head::classifier, 3);
  model.load_into(store);
  const auto tokenizer = load_tokenizer(golden("bert"));
  const auto write = [&] {
    return message_of<UserError>(
        [&] { write_huggingface_encoder(scratch / "out", model.config(), store, *tokenizer, SafetensorsType::f32); });
  };
  make_directories(scratch / "out/tokenizer.json");  // the file cannot be written
  EXPECT_NE(write(), "");
  EXPECT_TRUE(file_exists(scratch / "out/model.safetensors"));
  remove_directory_tree(scratch / "out/tokenizer.json");
  EXPECT_EQ(write(), "");
  EXPECT_EQ(names_in(scratch / "out"), (std::vector<std::string>{"config.json", "model.safetensors", "tokenizer.json",
                                                                 "tokenizer_config.json", "vocab.txt"}));
  EXPECT_TRUE(has(write(), "it holds a model already"));
}

TEST(WeightFiles, SayWhatIsMissing) {
  const ScratchFolder scratch;
  EXPECT_TRUE(has(message_of<UserError>([&] { WeightFiles files(scratch.path()); }),
                  "neither model.safetensors nor pytorch_model.bin"));
  fs::copy(golden("bert_pretraining_bin"), scratch / "model");
  fs::remove(scratch / "model/pytorch_model-00002-of-00002.bin");
  EXPECT_TRUE(has(message_of<UserError>([&] { WeightFiles files(scratch / "model"); }),
                  "pytorch_model-00002-of-00002.bin: no such file; pytorch_model.bin.index.json says that it holds"));
  put_contents(scratch / "model/pytorch_model.bin.index.json", R"({"weight_map": {"x": "../secret.bin"}})");
  EXPECT_TRUE(has(message_of<UserError>([&] { WeightFiles files(scratch / "model"); }), "expected the name of a file"));
}

}  // namespace
}  // namespace brisk
