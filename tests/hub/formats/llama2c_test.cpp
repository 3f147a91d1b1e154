#include "hub/formats/llama2c.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "base/error.h"
#include "support/scratch_folder.h"

namespace brisk {
namespace {

using test::message_of;
using test::put_contents;
using test::ScratchFolder;

constexpr int32_t D = 8, F = 6, L = 2, H = 2, G = 1, V = 5, T = 3, K = D / H;

// A model file whose floats are their own place in the file: 0, 1, 2, ...
std::string model_file(bool tied) {
  const int32_t header[7] = {D, F, L, H, G, tied ? V : -V, T};
  const int64_t floats = V * D + L * D + L * D * D + 2 * L * G * K * D + L * D * D + L * D + 3 * L * F * D + D +
                         2 * T * K / 2 + (tied ? 0 : V * D);
  std::string contents(sizeof header + static_cast<size_t>(floats) * 4, '\0');
  std::memcpy(contents.data(), header, sizeof header);
  for (int64_t i = 0; i < floats; ++i) {
    const float value = static_cast<float>(i);
    std::memcpy(contents.data() + sizeof header + 4 * i, &value, 4);
  }
  return contents;
}

void declare_decoder(ParameterStore& store, bool tied) {
  const auto add = [&](const std::string& name, int64_t rows, int64_t cols) {
    ParameterSpec spec;
    spec.name = name;
    spec.rows = rows;
    spec.cols = cols;
    store.add(spec);
  };
  add("embedding.weight", V, D);
  for (int layer = 0; layer < L; ++layer) {
    const std::string prefix = "layers." + std::to_string(layer) + ".";
    add(prefix + "attention_norm.gain", 1, D);
    add(prefix + "qkv.weight", (H + 2 * G) * K, D);
    add(prefix + "attention_out.weight", D, H * K);
    add(prefix + "feed_forward_norm.gain", 1, D);
    add(prefix + "up.weight", 2 * F, D);
    add(prefix + "down.weight", D, F);
  }
  add("final_norm.gain", 1, D);
  if (!tied) add("head.weight", V, D);
}

// Device memory is read only through a copy: the store lies where a plain read would be a crash.
std::vector<float> values_of(const ParameterStore& store, const std::string& name) {
  const Parameter* parameter = store.find(name);
  std::vector<float> values(static_cast<size_t>(parameter->count()));
  store.device().copy_out(values.data(), parameter->master.data, parameter->count() * 4);
  return values;
}

class Llama2c : public ::testing::Test {
 protected:
  std::string complaint(const std::string& contents) {
    put_contents(path_, contents);
    const std::string message = message_of<UserError>([&] { open_llama2c(path_); });
    EXPECT_TRUE(message.empty() || message.find(path_) != std::string::npos) << message;
    return message;
  }
  std::string complaint_of_header(size_t field, int32_t value) {
    std::string contents = model_file(true);
    std::memcpy(contents.data() + 4 * field, &value, 4);
    return complaint(contents);
  }

  ScratchFolder folder_;
  std::string path_ = folder_ / "model.bin";
};

TEST_F(Llama2c, TensorsLieInTheOrderOfTheFile) {
  for (const bool tied : {true, false}) {
    put_contents(path_, model_file(tied));
    const Llama2cModel model = open_llama2c(path_);
    EXPECT_EQ(model.tied, tied);
    EXPECT_EQ(model.width, D);
    EXPECT_EQ(model.feed_forward_width, F);
    EXPECT_EQ(model.vocabulary, V);
    EXPECT_EQ(model.context, T);
    float next = 0;
    const auto expect_next = [&](std::span<const float> tensor, int64_t count) {
      ASSERT_EQ(std::ssize(tensor), count);
      EXPECT_EQ(tensor.front(), next);
      next += static_cast<float>(count);
      EXPECT_EQ(tensor.back(), next - 1);
    };
    expect_next(model.embedding, V * D);
    expect_next(model.attention_norm, L * D);
    expect_next(model.query, L * D * D);
    expect_next(model.key, L * G * K * D);
    expect_next(model.value, L * G * K * D);
    expect_next(model.attention_out, L * D * D);
    expect_next(model.feed_forward_norm, L * D);
    expect_next(model.gate, L * F * D);
    expect_next(model.down, L * F * D);
    expect_next(model.up, L * F * D);
    expect_next(model.final_norm, D);
    next += T * K;
    if (!tied) expect_next(model.head, V * D);
    EXPECT_EQ(model.head.data() == model.embedding.data(), tied);
  }
}

TEST_F(Llama2c, OptionsDescribeTheDecoder) {
  put_contents(path_, model_file(false));
  const ModelOptions options = model_options(open_llama2c(path_));
  EXPECT_EQ(options.d_model, D);
  EXPECT_EQ(options.num_layers, L);
  EXPECT_EQ(options.num_heads, H);
  EXPECT_EQ(options.num_kv_heads, G);
  EXPECT_EQ(options.d_ff, F);
  EXPECT_EQ(options.vocab_size, V);
  EXPECT_EQ(options.norm, "rmsnorm");
  EXPECT_EQ(options.activation, "swiglu");
  EXPECT_EQ(options.positions, "rotary");
  EXPECT_FALSE(options.tie_embeddings);
  EXPECT_FALSE(options.bias);
}

TEST_F(Llama2c, ADecoderGetsQueriesKeysValuesAndGateBeforeUp) {
  put_contents(path_, model_file(false));
  const Llama2cModel model = open_llama2c(path_);
  ParameterStore store;
  declare_decoder(store, false);
  store.allocate(guarded_device(), {}, DType::f32, ParameterStore::Purpose::inference);
  load_into(model, store);

  const std::vector<float> qkv = values_of(store, "layers.1.qkv.weight");
  EXPECT_EQ(qkv[0], model.query[D * D]);
  EXPECT_EQ(qkv[H * K * D - 1], model.query.back());
  EXPECT_EQ(qkv[H * K * D], model.key[G * K * D]);
  EXPECT_EQ(qkv[(H + G) * K * D], model.value[G * K * D]);
  EXPECT_EQ(qkv.back(), model.value.back());
  const std::vector<float> up = values_of(store, "layers.0.up.weight");
  EXPECT_EQ(up[0], model.gate[0]);
  EXPECT_EQ(up[F * D], model.up[0]);
  EXPECT_EQ(up.back(), model.up[F * D - 1]);
  EXPECT_EQ(values_of(store, "layers.1.down.weight")[0], model.down[F * D]);
  EXPECT_EQ(values_of(store, "layers.1.attention_norm.gain")[0], model.attention_norm[D]);
  EXPECT_EQ(values_of(store, "layers.1.feed_forward_norm.gain")[0], model.feed_forward_norm[D]);
  EXPECT_EQ(values_of(store, "layers.1.attention_out.weight").back(), model.attention_out.back());
  EXPECT_EQ(values_of(store, "final_norm.gain"), std::vector<float>(model.final_norm.begin(), model.final_norm.end()));
  EXPECT_EQ(values_of(store, "head.weight")[0], model.head[0]);
  EXPECT_EQ(values_of(store, "embedding.weight").back(), V * D - 1);
}

TEST_F(Llama2c, ADecoderOfAnotherShapeIsRefusedByTheParameterThatDiffers) {
  put_contents(path_, model_file(true));
  const Llama2cModel model = open_llama2c(path_);
  const auto complaint_of = [&](const std::function<void(ParameterStore&)>& change) {
    ParameterStore store;
    declare_decoder(store, true);
    change(store);
    store.allocate(cpu_device(), {}, DType::f32, ParameterStore::Purpose::inference);
    return message_of<UserError>([&] { load_into(model, store); });
  };
  EXPECT_EQ(complaint_of([](ParameterStore&) {}), "");
  EXPECT_NE(complaint_of([](ParameterStore& store) {
              store.find("layers.1.down.weight")->spec.cols = F + 1;
            }).find("'layers.1.down.weight' is [8, 6] in the file and [8, 7] in the decoder"),
            std::string::npos);
  EXPECT_NE(complaint_of([](ParameterStore& store) {
              store.find("final_norm.gain")->spec.name = "x";
            }).find("final_norm.gain"),
            std::string::npos);
  EXPECT_NE(complaint_of([](ParameterStore& store) {
              ParameterSpec spec;
              spec.name = "head.weight";
              store.add(spec);
            }).find("'head.weight', which the file does not have"),
            std::string::npos);
}

TEST_F(Llama2c, EveryTruncationIsRefused) {
  for (const bool tied : {true, false}) {
    const std::string whole = model_file(tied);
    EXPECT_EQ(complaint(whole), "");
    for (size_t length = 0; length < whole.size(); ++length)
      ASSERT_NE(complaint(whole.substr(0, length)), "") << length;
    EXPECT_NE(complaint(whole + std::string(4, '\0')), "");
  }
}

TEST_F(Llama2c, HeadersThatNoModelHasAreRefused) {
  EXPECT_NE(complaint_of_header(0, 0).find("dim is 0"), std::string::npos);
  EXPECT_NE(complaint_of_header(2, -3).find("n_layers is -3"), std::string::npos);
  EXPECT_NE(complaint_of_header(6, 1 << 30).find("seq_len"), std::string::npos);
  EXPECT_NE(complaint_of_header(5, INT32_MIN).find("vocab_size is -2147483648"), std::string::npos);
  EXPECT_NE(complaint_of_header(3, 3).find("n_heads 3"), std::string::npos);
  EXPECT_NE(complaint_of_header(2, 40000).find("n_layers is 40000, expected 1 to 1000"), std::string::npos);
  EXPECT_NE(complaint_of_header(1, 1 << 20).find("found"), std::string::npos);
  EXPECT_NE(complaint_of_header(0, 0x616b3432).find("expected version 0"), std::string::npos);
}

}  // namespace
}  // namespace brisk
