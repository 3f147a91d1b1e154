#include "hub/gguf/gguf_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "support/scratch_folder.h"

namespace brisk {
namespace {

using test::has;
using test::message_of;
using test::ScratchFolder;

ModelOptions llama() {
  ModelOptions model;
  model.norm = "rmsnorm";
  model.activation = "swiglu";
  model.positions = "rotary";
  model.bias = false;
  model.tie_embeddings = false;
  model.d_model = 8;
  model.num_layers = 2;
  model.num_heads = 2;
  model.num_kv_heads = 1;
  model.d_ff = 16;
  model.vocab_size = 270;
  model.context = 32;
  return model;
}

// The parameters of a decoder.
void fill(ParameterStore& store, const ModelOptions& model) {
  const auto add = [&](const std::string& name, int64_t rows, int64_t cols) {
    store.add({.name = name, .rows = rows, .cols = cols, .initial = {Initial::Kind::normal, 0.5}});
  };
  const int64_t D = model.d_model, K = D / model.num_heads;
  const auto linear = [&](const std::string& name, int64_t rows, int64_t cols) {
    add(name + ".weight", rows, cols);
    if (model.bias) add(name + ".bias", 1, rows);
  };
  add("embedding.weight", model.vocab_size, D);
  for (int64_t l = 0; l < model.num_layers; ++l) {
    const std::string layer = fmt::format("layers.{}.", l);
    add(layer + "attention_norm.gain", 1, D);
    linear(layer + "qkv", D + 2 * model.num_kv_heads * K, D);
    linear(layer + "attention_out", D, D);
    add(layer + "feed_forward_norm.gain", 1, D);
    linear(layer + "up", 2 * model.d_ff, D);
    linear(layer + "down", D, model.d_ff);
  }
  add("final_norm.gain", 1, D);
  if (!model.tie_embeddings) add("head.weight", model.vocab_size, D);
  store.allocate(cpu_device(), {}, DType::f32, ParameterStore::Purpose::inference);
}

std::vector<float> numbers_of(const Parameter& parameter) {
  std::vector<float> numbers(static_cast<size_t>(parameter.count()));
  cpu_device().copy_out(numbers.data(), parameter.master.data, 4 * parameter.count());
  return numbers;
}

std::unique_ptr<Tokenizer> some_tokenizer() {
  const std::vector<std::string_view> texts = {"the cat then the dog then the end abcabc abc"};
  return train_bpe(texts, {.vocab_size = 262}).tokenizer;
}

GgufWriter::Fill zeros() {
  return [](int64_t, std::span<std::byte> block) { std::ranges::fill(block, std::byte{0}); };
}

TEST(GgufModel, ReadsBackTheModelThatWasWritten) {
  const ScratchFolder scratch;
  ModelOptions model = llama();
  ParameterStore store, again;
  fill(store, model);
  store.initialise(7);
  fill(again, model);
  const std::string path = scratch / "model.gguf";
  const auto write = [&] { write_gguf(path, "small", model, store, *some_tokenizer(), GgufType::f32); };
  write();
  const GgufModel read(path);
  EXPECT_EQ(read.options().d_model, 8);
  EXPECT_EQ(read.options().num_layers, 2);
  EXPECT_EQ(read.options().num_kv_heads, 1);
  EXPECT_EQ(read.options().d_ff, 16);
  EXPECT_EQ(read.options().vocab_size, 270);
  EXPECT_EQ(read.options().context, 32);
  EXPECT_FALSE(read.options().bias);
  EXPECT_FALSE(read.options().tie_embeddings);
  EXPECT_EQ(read.tokenizer()->fingerprint(), some_tokenizer()->fingerprint());
  read.load_into(again);
  for (const auto& parameter : store.all()) {
    EXPECT_EQ(numbers_of(*parameter), numbers_of(*again.find(parameter->spec.name))) << parameter->spec.name;
  }
  EXPECT_TRUE(has(message_of<UserError>(write), "the file already exists"));
}

class DamagedGgufModel : public ::testing::Test {
 protected:
  using Change = std::function<void(GgufWriter&)>;

  // What a small model complains of that lacks the key or the tensor `without`, and has what `change` adds.
  std::string complaint(const std::string& without, const Change& change) {
    std::filesystem::remove(path_);
    GgufWriter writer(path_);
    const auto size = [&](const char* key, uint32_t value) {
      if (without != key) writer.set(key, value);
    };
    if (without != "general.architecture") writer.set("general.architecture", "llama");
    size("llama.embedding_length", 8);
    size("llama.block_count", 1);
    size("llama.attention.head_count", 2);
    size("llama.feed_forward_length", 16);
    size("llama.context_length", 32);
    if (without != "token_embd.weight") writer.add("token_embd.weight", GgufType::f32, {3, 8}, zeros());
    change(writer);
    writer.finish();
    return message_of<UserError>([&] {
      const GgufModel model(path_);
      ParameterStore store;
      fill(store, model.options());
      model.load_into(store);
    });
  }

  static Change setting(const std::string& key, auto value) {
    return [=](GgufWriter& writer) { writer.set(key, value); };
  }
  static Change nothing() {
    return [](GgufWriter&) {};
  }

  ScratchFolder scratch_;
  std::string path_ = scratch_ / "model.gguf";
};

TEST_F(DamagedGgufModel, NamesTheKeyThatIsMissingOrOutOfRange) {
  EXPECT_TRUE(has(complaint("", nothing()), "it has no tensor 'blk.0.attn_norm.weight'"));
  EXPECT_TRUE(has(complaint("general.architecture", nothing()), "general.architecture is missing"));
  EXPECT_TRUE(has(complaint("general.architecture", setting("general.architecture", "bert")), "\"bert\""));
  EXPECT_TRUE(has(complaint("llama.block_count", nothing()), "it has no llama.block_count"));
  for (const char* key : {"llama.embedding_length", "llama.block_count", "llama.attention.head_count",
                          "llama.feed_forward_length", "llama.context_length"}) {
    for (const uint32_t value : {0u, 2'000'000'000u}) {
      EXPECT_TRUE(has(complaint(key, setting(key, value)), fmt::format("{} is {}, expected an integer", key, value)));
    }
    EXPECT_TRUE(has(complaint(key, setting(key, 0.5f)), fmt::format("{} is of the wrong type", key)));
  }
  for (const char* key : {"llama.attention.layer_norm_rms_epsilon", "llama.rope.freq_base"}) {
    for (const float value : {-1.0f, std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
      EXPECT_TRUE(has(complaint("", setting(key, value)), fmt::format("{} is {}, expected a number", key, value)));
    }
    EXPECT_TRUE(has(complaint("", setting(key, "1")), fmt::format("{} is of the wrong type", key)));
  }
}

TEST_F(DamagedGgufModel, NamesWhatBriskDoesNotCompute) {
  EXPECT_TRUE(has(complaint("llama.attention.head_count", setting("llama.attention.head_count", uint32_t{3})),
                  "expected heads of equal and even width"));
  EXPECT_TRUE(has(complaint("", setting("llama.attention.head_count_kv", uint32_t{3})), "3 key/value heads"));
  EXPECT_TRUE(has(complaint("", setting("llama.rope.dimension_count", uint32_t{2})), "partial or scaled"));
  EXPECT_TRUE(has(complaint("", setting("llama.rope.scaling.type", "yarn")), "partial or scaled"));
  EXPECT_TRUE(has(complaint("", setting("llama.expert_count", uint32_t{8})), "a mixture of experts"));
  const auto table_of = [](std::vector<int64_t> shape) {
    return [shape](GgufWriter& writer) { writer.add("token_embd.weight", GgufType::f32, shape, zeros()); };
  };
  EXPECT_TRUE(has(complaint("token_embd.weight", table_of({24})), "no matrix 'token_embd.weight'"));
  EXPECT_TRUE(has(complaint("token_embd.weight", table_of({3, 4})), "'token_embd.weight' is [3, 4]"));
  EXPECT_TRUE(has(complaint("token_embd.weight", nothing()), "no matrix 'token_embd.weight'"));
}

}  // namespace
}  // namespace brisk
