// brisk against transformers: the folders that scripts/make_hub_golden.py writes give the same logits here, and what
// brisk writes is the model it was.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/files.h"
#include "hub/gguf/gguf_model.h"
#include "hub/huggingface/decoder.h"
#include "infer/open/import.h"
#include "infer/open/model_source.h"
#include "infer/open/trained_model.h"
#include "support/model_logits.h"
#include "support/scratch_folder.h"

namespace brisk {
namespace {

using Json = nlohmann::ordered_json;
using test::has;
using test::message_of;
using test::put_contents;
using test::ScratchFolder;
using testing::logits_of;
using testing::Threads;

std::string golden_folder(const std::string& name) { return std::string(BRISK_GOLDEN) + "/hub/" + name; }

struct Golden {
  std::vector<int32_t> tokens;
  std::vector<std::vector<float>> logits;  // of the first entries of the vocabulary
};

Golden golden_of(const std::string& name) {
  const Json json = Json::parse(test::contents_of(golden_folder(name) + "/golden.json"));
  return {json.at("tokens").get<std::vector<int32_t>>(), json.at("logits").get<std::vector<std::vector<float>>>()};
}

std::vector<float> logits_of(const std::string& path, const std::vector<int32_t>& tokens) {
  const auto model = open_trained_model(path, "");
  return logits_of(testing::as_decoder(*model->model), model->store, tokens);
}

void expect_golden_logits(const std::string& path, const Golden& golden, double tolerance) {
  const std::vector<float> found = logits_of(path, golden.tokens);
  const size_t width = found.size() / golden.tokens.size();
  double largest = 0;
  for (size_t row = 0; row < golden.logits.size(); ++row) {
    for (size_t col = 0; col < golden.logits[row].size(); ++col) {
      largest = std::max(largest, std::fabs(static_cast<double>(found[row * width + col]) - golden.logits[row][col]));
    }
  }
  EXPECT_LE(largest, tolerance) << path;
}

class ForeignModel : public ::testing::TestWithParam<std::string> {
 protected:
  Threads one_{1};
  ScratchFolder scratch_;
  const std::string folder_ = golden_folder(GetParam());
  const Golden golden_ = golden_of(GetParam());
};

TEST_P(ForeignModel, HasTheLogitsOfTransformers) { expect_golden_logits(folder_, golden_, 1e-4); }

TEST_P(ForeignModel, BecomesARunWithTheSameLogits) {
  import_model(folder_, "", scratch_ / "run");
  expect_golden_logits(scratch_ / "run", golden_, 1e-4);
}

TEST_P(ForeignModel, IsTheSameWhenWrittenForHuggingFaceAgain) {
  const auto model = open_trained_model(folder_, "");
  write_huggingface(scratch_ / "out", model->job.model, model->store, *model->tokenizer, SafetensorsType::f32);
  EXPECT_EQ(logits_of(scratch_ / "out", golden_.tokens), logits_of(folder_, golden_.tokens));

  const HuggingFaceDecoder before(folder_), after(scratch_ / "out");
  EXPECT_EQ(after.config().model.rope_theta, before.config().model.rope_theta);
  EXPECT_EQ(after.config().model.norm_epsilon, before.config().model.norm_epsilon);
  EXPECT_EQ(after.config().model.context, before.config().model.context);
  const std::string name =
      GetParam() == "gpt2" ? "transformer.h.1.attn.c_attn.weight" : "model.layers.1.self_attn.k_proj.weight";
  ASSERT_NE(after.find(name), nullptr);
  EXPECT_EQ(after.find(name)->shape, before.find(name)->shape);
}

INSTANTIATE_TEST_SUITE_P(Golden, ForeignModel, ::testing::Values("gpt2", "llama", "llama_sharded"),
                         [](const auto& info) { return info.param; });

TEST(ForeignModels, OfLlamasShapeGoThroughGguf) {
  const Threads one(1);
  const ScratchFolder scratch;
  for (const std::string name : {"llama", "llama_sharded"}) {
    const Golden golden = golden_of(name);
    const auto model = open_trained_model(golden_folder(name), "");
    for (const GgufType type : {GgufType::f32, GgufType::f16, GgufType::bf16}) {
      const std::string path = scratch / (name + gguf_type_name(static_cast<uint32_t>(type)) + ".gguf");
      write_gguf(path, name, model->job.model, model->store, *model->tokenizer, type);
      if (type == GgufType::f32) {
        EXPECT_EQ(logits_of(path, golden.tokens), logits_of(golden_folder(name), golden.tokens));
      } else {
        expect_golden_logits(path, golden, type == GgufType::f16 ? 0.05 : 0.3);
      }
      EXPECT_EQ(open_trained_model(path, "")->tokenizer->fingerprint(), model->tokenizer->fingerprint());
    }
  }
}

TEST(ForeignModels, OfGpt2sShapeAreRefusedByGgufWithTheOptionInTheWay) {
  const ScratchFolder scratch;
  const auto model = open_trained_model(golden_folder("gpt2"), "");
  const std::string message = message_of<UserError>([&] {
    write_gguf(scratch / "model.gguf", "x", model->job.model, model->store, *model->tokenizer, GgufType::f32);
  });
  EXPECT_TRUE(has(message, "model.norm = layernorm")) << message;
  EXPECT_FALSE(file_exists(scratch / "model.gguf"));
}

TEST(ForeignModels, AMixtureOfBothShapesIsRefusedWithTheOptionsInTheWay) {
  ModelOptions model;
  model.num_heads = model.num_kv_heads = 4;
  model.positions = "rotary";
  const std::string message = message_of<UserError>([&] { huggingface_config_for(model); });
  EXPECT_TRUE(has(message, "model.positions = rotary")) << message;
  EXPECT_TRUE(has(message, "model.norm = layernorm")) << message;
}

// A decoder without biases is GPT-2's with biases of zero.
TEST(ForeignModels, WithoutBiasesOrPositionsAreWrittenAsGpt2WithZeros) {
  const Threads one(1);
  const ScratchFolder scratch;
  DecoderConfig config = testing::gpt_shape();
  config.bias = false;
  config.positions = DecoderConfig::Positions::none;
  ParameterStore store;
  const Decoder decoder(config, store);
  store.allocate(cpu_device(), {}, DType::f32, ParameterStore::Purpose::inference);
  store.initialise(3);
  ModelOptions model;
  model.d_model = config.d_model;
  model.num_layers = config.num_layers;
  model.num_heads = model.num_kv_heads = config.num_heads;
  model.d_ff = config.d_ff;
  model.vocab_size = config.vocab_size;
  model.context = config.max_length;
  model.bias = false;
  model.positions = "none";
  model.norm_epsilon = config.norm_epsilon;
  model.tie_embeddings = config.tie_embeddings;
  write_huggingface(scratch / "out", model, store, testing::LetterTokenizer(), SafetensorsType::f32);

  const HuggingFaceDecoder written(scratch / "out");
  EXPECT_TRUE(written.config().model.bias);
  EXPECT_EQ(written.config().model.positions, "learned");
  DecoderConfig biased = config;
  biased.bias = true;
  biased.positions = DecoderConfig::Positions::learned;
  ParameterStore other_store;
  const Decoder other(biased, other_store);
  other_store.allocate(cpu_device(), {}, DType::f32, ParameterStore::Purpose::inference);
  written.load_into(other_store);
  const std::vector<int32_t> tokens = {3, 1, 4, 1, 5, 9, 2, 6};
  EXPECT_EQ(logits_of(other, other_store, tokens), logits_of(decoder, store, tokens));
}

// A copy of a golden folder, for breaking.
class DamagedFolder : public ::testing::Test {
 protected:
  void copy(const std::string& name) {
    std::filesystem::copy(golden_folder(name), scratch_.path(), std::filesystem::copy_options::recursive);
  }
  std::string complaint() {
    return message_of<UserError>([&] { open_trained_model(scratch_.path(), ""); });
  }
  void edit_config(const std::string& key, const Json& value) {
    Json config = Json::parse(test::contents_of(scratch_ / "config.json"));
    config[key] = value;
    put_contents(scratch_ / "config.json", config.dump());
  }

  ScratchFolder scratch_;
};

TEST_F(DamagedFolder, OfAnotherArchitectureNamesItAndTheSupportedOnes) {
  copy("llama");
  edit_config("model_type", "qwen3_moe");
  EXPECT_TRUE(has(complaint(), "\"qwen3_moe\"")) << complaint();
  EXPECT_TRUE(has(complaint(), "gpt2, llama and mistral")) << complaint();
}

TEST_F(DamagedFolder, WithAFeatureBriskLacksNamesIt) {
  copy("llama");
  edit_config("rope_scaling", {{"rope_type", "llama3"}, {"factor", 8}});
  EXPECT_TRUE(has(complaint(), "rope_scaling is {\"rope_type\":\"llama3\"")) << complaint();
  edit_config("rope_scaling", nullptr);
  edit_config("head_dim", 16);
  EXPECT_TRUE(has(complaint(), "head_dim is 16")) << complaint();
  edit_config("head_dim", 8);
  edit_config("hidden_act", "gelu");
  EXPECT_TRUE(has(complaint(), "hidden_act is \"gelu\"")) << complaint();
  edit_config("hidden_act", "silu");
  EXPECT_EQ(complaint(), "");
}

TEST_F(DamagedFolder, WithAnImpossibleSizeSaysWhich) {
  copy("gpt2");
  edit_config("n_layer", -3);
  EXPECT_TRUE(has(complaint(), "n_layer is -3")) << complaint();
  edit_config("n_layer", "two");
  EXPECT_TRUE(has(complaint(), "n_layer is \"two\"")) << complaint();
  edit_config("n_layer", 2);
  edit_config("n_head", 5);
  EXPECT_TRUE(has(complaint(), "24 in 5 heads")) << complaint();
}

TEST_F(DamagedFolder, WithANumberWithoutMeaningSaysWhatIsExpected) {
  copy("llama");
  const auto expect = [&](const char* key, const Json& value, const std::string& part) {
    const Json before = Json::parse(read_file(scratch_ / "config.json", file_kind::config)).value(key, Json());
    edit_config(key, value);
    EXPECT_TRUE(has(complaint(), "/config.json: " + part)) << "expected '" << part << "' in '" << complaint() << "'";
    edit_config(key, before);
  };
  expect("rms_norm_eps", -1, "rms_norm_eps is -1, expected a number above 0 and at most 1");
  expect("rms_norm_eps", 0, "rms_norm_eps is 0, expected a number above 0");
  expect("rms_norm_eps", "NaN", "rms_norm_eps is \"NaN\"");
  expect("rope_theta", 0, "rope_theta is 0, expected a number above 1");
  expect("rope_theta", 500,
         "rope_theta is 500, which brisk does not support; it supports the same as in rope_parameters");
  expect("rope_parameters", {{"rope_theta", -1}}, "rope_theta is -1, expected a number above 1");
  expect("attention_dropout", 1.5, "attention_dropout is 1.5, expected a number from 0 on, below 1");
  expect("num_hidden_layers", 40000, "num_hidden_layers is 40000, expected an integer from 1 to 1000");
  expect("vocab_size", 0, "vocab_size is 0");
  expect("vocab_size", -5, "vocab_size is -5");
  expect("hidden_size", 1 << 24, "hidden_size is 16777216, expected an integer from 1 to 65536");
  EXPECT_EQ(complaint(), "");
}

// Otherwise memory for it would be asked for first.
TEST_F(DamagedFolder, OfAGiantsConfigurationIsRefusedByItsWeights) {
  copy("llama");
  edit_config("vocab_size", 1 << 24);
  edit_config("intermediate_size", 1 << 20);
  EXPECT_TRUE(has(complaint(), "'model.embed_tokens.weight' has the shape")) << complaint();
  EXPECT_TRUE(has(message_of<UserError>([&] { open_model_source(scratch_.path()); }), "has the shape"));
}

TEST_F(DamagedFolder, WithFewerLayersThanTensorsSaysSo) {
  copy("gpt2");
  edit_config("n_layer", 1);
  EXPECT_TRUE(has(complaint(), "its configuration has 1 layers, but the weights have 'transformer.h.1."))
      << complaint();
}

// The bytes of a number of a tensor, in the file.
void put_number(const std::string& path, const std::string& tensor, int64_t index, float number) {
  std::string contents = read_file(path, file_kind::events);
  const SafetensorsFile file("x", std::as_bytes(std::span(contents)));
  const auto* first = static_cast<const char*>(file.find(tensor)->data);
  std::memcpy(contents.data() + (first - contents.data()) + 4 * index, &number, sizeof number);
  put_contents(path, contents);
}

TEST_F(DamagedFolder, WithNumbersThatAreNotFiniteNamesThem) {
  copy("gpt2");
  const std::string weights = scratch_ / "model.safetensors", tensor = "transformer.h.1.mlp.c_fc.weight";
  put_number(weights, tensor, 7, std::numeric_limits<float>::quiet_NaN());
  put_number(weights, tensor, 9, std::numeric_limits<float>::infinity());
  EXPECT_TRUE(has(complaint(), "'" + tensor + "' holds 2 numbers that are not finite, the first (nan) at index 7 of"))
      << complaint();
  EXPECT_TRUE(has(complaint(), "--allow-nonfinite")) << complaint();
  put_number(weights, "transformer.ln_f.bias", 0, -std::numeric_limits<float>::infinity());
  EXPECT_TRUE(has(complaint(), ", and 1 other tensor too")) << complaint();

  const ScratchFolder other;
  EXPECT_NE(message_of<UserError>([&] { import_model(scratch_.path(), "", other / "run"); }), "");
  EXPECT_FALSE(file_exists(other / "run"));
  EXPECT_EQ(message_of<UserError>([&] { import_model(scratch_.path(), "", other / "run", NonFinite::allow); }), "");
  const std::string of_run = message_of<UserError>([&] { open_trained_model(other / "run", ""); });
  EXPECT_TRUE(has(of_run, "step-00000000: 'layers.1.up.weight' holds 2 numbers that are not finite")) << of_run;
  EXPECT_NE(open_trained_model(other / "run", "", false, "cpu", NonFinite::allow), nullptr);
}

TEST_F(DamagedFolder, WithMoreLayersThanTensorsNamesTheMissingTensor) {
  copy("gpt2");
  edit_config("n_layer", 3);
  EXPECT_TRUE(has(complaint(), "no tensor 'transformer.h.2.ln_1.weight'")) << complaint();
}

TEST_F(DamagedFolder, WithTensorsOfAnotherShapeNamesBothShapes) {
  copy("gpt2");
  edit_config("n_inner", 48);
  EXPECT_TRUE(has(complaint(), "'transformer.h.0.mlp.c_fc.weight' has the shape [24, 40]")) << complaint();
  EXPECT_TRUE(has(complaint(), "[24, 48]")) << complaint();
}

TEST_F(DamagedFolder, WithATruncatedShardSaysSo) {
  copy("llama_sharded");
  const std::string shard = scratch_ / "model-00002-of-00002.safetensors";
  const std::string contents = test::contents_of(shard);
  put_contents(shard, contents.substr(0, contents.size() - 100));
  EXPECT_TRUE(has(complaint(), "model-00002-of-00002.safetensors: incomplete or damaged safetensors file"))
      << complaint();
  std::filesystem::remove(shard);
  EXPECT_TRUE(has(complaint(), "model-00002-of-00002.safetensors: no such file")) << complaint();
}

TEST_F(DamagedFolder, WithAnIndexThatLiesSaysSo) {
  copy("llama_sharded");
  Json index = Json::parse(test::contents_of(scratch_ / "model.safetensors.index.json"));
  index["weight_map"]["model.no_such.weight"] = "model-00001-of-00002.safetensors";
  put_contents(scratch_ / "model.safetensors.index.json", index.dump());
  EXPECT_TRUE(has(complaint(), "it has no 'model.no_such.weight'")) << complaint();
  index["weight_map"]["model.no_such.weight"] = "../secret";
  put_contents(scratch_ / "model.safetensors.index.json", index.dump());
  EXPECT_TRUE(has(complaint(), "expected the name of a file next to it")) << complaint();
}

TEST_F(DamagedFolder, LeavesNoHalfImportedRunBehind) {
  copy("gpt2");
  edit_config("n_layer", 3);
  const ScratchFolder other;
  EXPECT_NE(message_of<UserError>([&] { import_model(scratch_.path(), "", other / "run"); }), "");
  EXPECT_FALSE(file_exists(other / "run"));
}

TEST(ModelFrom, BringsTheArchitectureAndNamesEveryKeyThatSaysOtherwise) {
  const std::string folder = golden_folder("llama");
  std::vector<std::string> notes;
  Job job = job_from_json_text("{\"model\": {\"from\": \"" + folder + "\"}}", "job", {}, notes);
  take_model_from_source(job, false);
  resolve_defaults(job);
  EXPECT_EQ(job.model.d_model, 32);
  EXPECT_EQ(job.model.num_kv_heads, 2);
  EXPECT_EQ(job.model.norm, "rmsnorm");
  EXPECT_EQ(job.model.rope_theta, 500000);
  EXPECT_EQ(job.model.vocab_size, 260);
  EXPECT_EQ(job.training.max_length, 32);
  EXPECT_EQ(job.model.from, folder);

  Job other = job_from_json_text(
      "{\"model\": {\"d_model\": 64, \"norm\": \"layernorm\", \"num_layers\": 2, \"from\": \"" + folder + "\"}}", "job",
      {}, notes);
  const std::string message = message_of<UserError>([&] { take_model_from_source(other, false); });
  EXPECT_TRUE(has(message, "model.d_model is 32 there and 64 in the job")) << message;
  EXPECT_TRUE(has(message, "model.norm is \"rmsnorm\" there and \"layernorm\" in the job")) << message;
  EXPECT_FALSE(has(message, "num_layers")) << message;
}

}  // namespace
}  // namespace brisk
