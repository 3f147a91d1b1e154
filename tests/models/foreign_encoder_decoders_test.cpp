// brisk against transformers: the encoder-decoders that scripts/make_seq2seq_folders.py writes give the same logits here, and
// are written again as they were.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/files/files.h"
#include "hub/formats/safetensors.h"
#include "hub/huggingface/encoder_decoder.h"
#include "infer/forward/forward_run.h"
#include "infer/open/model_source.h"
#include "models/encoder_decoder.h"
#include "support/micro_batches.h"
#include "support/scratch_folder.h"
#include "support/tiny_job.h"

namespace brisk {
namespace {

using Json = nlohmann::ordered_json;
using testing::Threads;
using testing::values_of;

std::string folder_of(const std::string& name) { return std::string(BRISK_GOLDEN) + "/seq2seq/folders/" + name; }

class LoadedFolder {
 public:
  explicit LoadedFolder(const std::string& path)
      : source(open_model_source(path)), model(make_model(source.config, store)) {
    store.allocate(cpu_device(), {}, DType::f32, ParameterStore::Purpose::inference);
    source.load_into(store, NonFinite::refuse);
  }

  std::vector<float> logits(const std::vector<int32_t>& texts, const std::vector<int32_t>& targets) {
    MicroBatch batch;
    batch.sets.resize(2);
    testing::add_sequence(batch.sets[0], texts);
    testing::add_sequence(batch.sets[1], targets);
    const std::vector<RowCapacity> rows = {{std::ssize(texts), 1, std::ssize(texts)},
                                           {std::ssize(targets), 1, std::ssize(targets)}};
    ForwardRun run(store, {.rows = rows}, [&](Tape& tape) { return model->conditional()->logits(tape); });
    Ledger ledger;
    run.forward(batch, ledger);
    std::vector<float> values;
    run.read(values);
    return values;
  }

  ModelSource source;
  ParameterStore store;
  std::unique_ptr<Model> model;
};

class ForeignEncoderDecoder : public ::testing::TestWithParam<std::string> {
 protected:
  const Threads one_{1};
  const std::string path_ = folder_of(GetParam());
  const Json golden_ = Json::parse(test::contents_of(path_ + "/golden.json"));

  void expect_golden_logits(LoadedFolder& folder) {
    const std::vector<float> found = folder.logits(golden_.at("source").get<std::vector<int32_t>>(),
                                                   golden_.at("target").get<std::vector<int32_t>>());
    size_t i = 0;
    for (const Json& row : golden_.at("logits")) {
      for (const Json& expected : row) {
        ASSERT_LT(i, found.size());
        EXPECT_NEAR(found[i++], expected.get<float>(), 1e-4);
      }
    }
    EXPECT_EQ(i, found.size());
  }
};

TEST_P(ForeignEncoderDecoder, HasTheLogitsOfTransformers) {
  LoadedFolder folder(path_);
  expect_golden_logits(folder);
  EXPECT_EQ(folder.source.job.task, "translate");
  EXPECT_EQ(folder.source.kind, "Hugging Face folder");
}

// All of its parameters but a BERT's pooler, which nobody reads; a bias that is not trained is a buffer there.
TEST_P(ForeignEncoderDecoder, HasAsManyParameters) {
  LoadedFolder folder(path_);
  int64_t count = 0;
  for (const auto& parameter : folder.store.all())
    count += parameter->spec.name == "head.bias" ? 0 : parameter->count();
  const auto& config = *folder.source.config.get_if<EncoderDecoderConfig>();
  if (config.head_bias == EncoderDecoderConfig::HeadBias::trained) count += config.target_vocab_size;
  const int64_t width = config.encoder.d_model;
  EXPECT_EQ(count + (config.head_transform ? width * width + width : 0), golden_.at("parameters").get<int64_t>());
}

TEST_P(ForeignEncoderDecoder, IsWrittenAsItWas) {
  LoadedFolder folder(path_);
  const test::ScratchFolder scratch;
  const std::string written = scratch / "written";
  const std::unique_ptr<Tokenizer> tokenizer = load_tokenizer(path_);
  write_huggingface_encoder_decoder(written, folder.source.model, folder.store, *tokenizer, *tokenizer,
                                    SafetensorsType::f32);
  const SafetensorsFile before(path_ + "/model.safetensors"), after(written + "/model.safetensors");
  for (const SafetensorsEntry& entry : before.entries()) {
    // Sinusoids are computed, and nobody reads a pooler; transformers writes a tied table more than once.
    if (entry.name.find(".pooler.") != std::string::npos || entry.name.find("embed_positions") != std::string::npos)
      continue;
    const SafetensorsEntry* same = after.find(entry.name);
    if (same == nullptr && (entry.name == "lm_head.weight" || entry.name.ends_with("decoder.bias") ||
                            entry.name.ends_with("embed_tokens.weight") || entry.name.ends_with("decoder.weight"))) {
      continue;
    }
    ASSERT_NE(same, nullptr) << entry.name;
    EXPECT_EQ(same->shape, entry.shape) << entry.name;
    ASSERT_EQ(same->bytes, entry.bytes) << entry.name;
    EXPECT_EQ(std::memcmp(same->data, entry.data, static_cast<size_t>(entry.bytes)), 0) << entry.name;
  }
  LoadedFolder again(written);
  EXPECT_TRUE(is_same_config(again.source.config, folder.source.config));
  expect_golden_logits(again);
  const Json config = Json::parse(test::contents_of(written + "/config.json"));
  EXPECT_EQ(config.at("model_type"), Json::parse(test::contents_of(path_ + "/config.json")).at("model_type"));
  EXPECT_EQ(config.at("eos_token_id"), 3);
}

INSTANTIATE_TEST_SUITE_P(Golden, ForeignEncoderDecoder,
                         ::testing::Values("marian", "marian_two", "pegasus", "bart", "mbart", "t5", "t5_gated",
                                           "two_berts", "two_widths"),
                         [](const auto& info) { return info.param; });

// What a config.json of this text is refused with.
std::string refusal(const std::string& text) {
  try {
    read_encoder_decoder_config(ConfigReader("config.json", text));
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

Json config_of(const std::string& name) { return Json::parse(test::contents_of(folder_of(name) + "/config.json")); }

std::string refusal_with(const std::string& name, const std::string& key, const Json& value) {
  Json config = config_of(name);
  config[key] = value;
  return refusal(config.dump());
}

TEST(ForeignEncoderDecoderConfig, SaysWhatIsNotSupported) {
  EXPECT_EQ(refusal_with("bart", "do_blenderbot_90_layernorm", true),
            "config.json: do_blenderbot_90_layernorm is true, which brisk does not support; it supports false");
  EXPECT_EQ(refusal_with("bart", "normalize_before", true),
            "config.json: normalize_before is true, which brisk does not support; it supports false");
  EXPECT_EQ(
      refusal_with("marian", "activation_function", "mish"),
      "config.json: activation_function is \"mish\", which brisk does not support; it supports relu, gelu, gelu_python, "
      "gelu_new, gelu_fast, gelu_pytorch_tanh, swish, silu");
  EXPECT_EQ(refusal_with("t5", "feed_forward_proj", "gated-relu"),
            "config.json: feed_forward_proj is \"gated-relu\", which brisk does not support; it supports relu, gelu, "
            "gelu_new, gated-gelu, gated-silu");
  EXPECT_EQ(
      refusal_with("t5", "relative_attention_max_distance", 4),
      "config.json: relative_attention_max_distance is 4, which brisk does not support; it supports more than half of "
      "relative_attention_num_buckets");
  EXPECT_EQ(refusal_with("t5", "relative_attention_num_buckets", 3),
            "config.json: relative_attention_num_buckets is 3, which brisk does not support; it supports 4 or more");
  EXPECT_EQ(refusal_with("bart", "decoder_attention_heads", 3),
            "config.json: a width of 8 in 3 heads: expected heads of equal width; fetch the file again");
  EXPECT_EQ(refusal_with("marian", "d_model", "wide"),
            "config.json: d_model is \"wide\", expected an integer from 1 to 65536; fetch the file again");
  EXPECT_EQ(refusal_with("two_berts", "decoder", 7),
            "config.json: it has no decoder, an object with the configuration of one; fetch the file again");
  Json two = config_of("two_berts");
  two["encoder"]["model_type"] = "roberta";
  EXPECT_EQ(refusal(two.dump()),
            "config.json (encoder): model_type is \"roberta\", which brisk does not support; it supports bert");
  two = config_of("two_berts");
  two["encoder"]["layer_norm_eps"] = 1e-5;
  EXPECT_EQ(refusal(two.dump()),
            "config.json (encoder): layer_norm_eps is 1e-05, which brisk does not support; it supports the decoder's, "
            "1e-12");
}

TEST(ForeignEncoderDecoderConfig, SaysWhichOptionNoShapeHas) {
  ModelOptions model;
  model.type = "encoder_decoder";
  model.activation = "relu";
  model.positions = "sinusoidal";
  EXPECT_EQ(encoder_decoder_config_for(model).shape, HuggingFaceEncoderDecoderConfig::Shape::pegasus);
  model.norm_position = "post";
  EXPECT_EQ(encoder_decoder_config_for(model).shape, HuggingFaceEncoderDecoderConfig::Shape::marian);
  const auto refused = [](const ModelOptions& options) -> std::string {
    try {
      encoder_decoder_config_for(options);
    } catch (const UserError& error) {
      return error.what();
    }
    return "";
  };
  const std::string start =
      "brisk writes an encoder-decoder for Hugging Face as Marian's, Pegasus's, BART's, mBART's or T5's shape, or as two "
      "BERTs; ";
  model.activation = "geglu";
  EXPECT_EQ(refused(model), start + "MarianMTModel, the nearest to this model, has no activation geglu");
  model.activation = "relu";
  model.positions = "rotary";
  EXPECT_EQ(refused(model), start + "MarianMTModel, the nearest to this model, has no positions rotary");
  model.positions = "learned";
  EXPECT_EQ(refused(model),
            start + "BartForConditionalGeneration, the nearest to this model, has no unnormalized embeddings");
}

TEST(ForeignEncoderDecoderFiles, SayWhatIsMissing) {
  const test::ScratchFolder scratch;
  const std::string path = scratch / "bart";
  std::filesystem::copy(folder_of("bart"), path);
  Json config = config_of("bart");
  config["decoder_layers"] = 3;
  write_file_atomically(path + "/config.json", config.dump());
  try {
    open_model_source(path);
    FAIL();
  } catch (const UserError& error) {
    EXPECT_EQ(std::string(error.what()),
              path +
                  ": it has no tensor 'model.decoder.layers.2.self_attn.q_proj.weight' ([8, 8]), which its "
                  "configuration asks for; fetch the checkpoint again");
  }
  config["decoder_layers"] = 1;
  write_file_atomically(path + "/config.json", config.dump());
  EXPECT_THROW(open_model_source(path), UserError);
}

}  // namespace
}  // namespace brisk
