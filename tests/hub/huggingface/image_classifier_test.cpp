// Image classifiers in Hugging Face folders: what is written is read again, and what brisk does not compute is refused.
// scripts/check_image_encoders.py compares both ways with transformers.
#include "hub/huggingface/image_classifier.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "base/files/files.h"
#include "image/preprocessor_config.h"
#include "support/scratch_folder.h"

namespace brisk {
namespace {

using test::has;
using test::message_of;

// Parameters as an ImageEncoder names them, of one layer, and a classifier of three labels.
void declare_vit(ParameterStore& store, int64_t labels = 3) {
  const auto add = [&](const char* name, int64_t rows, int64_t cols) {
    store.add({.name = name, .rows = rows, .cols = cols, .initial = {Initial::Kind::normal, 1}});
  };
  add("patches.weight", 8, 48);
  add("patches.table", 2, 8);
  add("positions.weight", 7, 8);
  for (const char* norm : {"layers.0.attention_norm", "layers.0.feed_forward_norm", "final_norm"}) {
    add((std::string(norm) + ".gain").c_str(), 1, 8);
    add((std::string(norm) + ".bias").c_str(), 1, 8);
  }
  add("layers.0.qkv.weight", 24, 8);
  add("layers.0.qkv.bias", 1, 24);
  add("layers.0.attention_out.weight", 8, 8);
  add("layers.0.attention_out.bias", 1, 8);
  add("layers.0.up.weight", 12, 8);
  add("layers.0.up.bias", 1, 12);
  add("layers.0.down.weight", 8, 12);
  add("layers.0.down.bias", 1, 8);
  add("classifier.weight", labels, 8);
  add("classifier.bias", 1, labels);
  store.allocate(cpu_device(), {}, DType::f32, ParameterStore::Purpose::inference);
  store.initialise(3);
}

ModelOptions vit_options() {
  ModelOptions model;
  model.type = model.image_encoder = "vit";
  model.d_model = 8;
  model.num_layers = 1;
  model.num_heads = 2;
  model.d_ff = 12;
  model.image_size = {8, 12};
  model.patch_size = 4;
  model.dropout = 0;
  model.image_processor = preprocessor_config_text(ImageInput::resized(8, 12, 4, true).processing);
  return model;
}

std::vector<float> numbers_of(const ParameterStore& store, const Parameter& parameter) {
  std::vector<float> numbers(static_cast<size_t>(parameter.count()));
  store.read(parameter, 0, numbers);
  return numbers;
}

TEST(HuggingFaceImageClassifier, ReadsWhatItWrote) {
  const test::ScratchFolder scratch;
  const std::string folder = scratch / "vit";
  ParameterStore store;
  declare_vit(store);
  write_huggingface_image_classifier(folder, vit_options(), {"cat", "dog", "page"}, store, SafetensorsType::f32);
  ASSERT_TRUE(is_huggingface_image_encoder(folder));
  const HuggingFaceImageClassifier there(folder);
  EXPECT_TRUE(there.has_classifier());
  EXPECT_EQ(there.labels(), (std::vector<std::string>{"cat", "dog", "page"}));
  EXPECT_EQ(there.model().image_size, (std::vector<int64_t>{8, 12}));
  EXPECT_EQ(there.model().d_ff, 12);
  EXPECT_EQ(there.model().pooling, "class");
  EXPECT_FALSE(there.model().image_processor.empty());
  ParameterStore read;
  declare_vit(read);
  read.initialise(9);
  there.check(read);
  EXPECT_TRUE(there.load_into(read).lines().empty()) << "nothing is missing, and nothing is left over";
  for (const auto& parameter : store.all()) {
    EXPECT_EQ(numbers_of(read, *read.find(parameter->spec.name)), numbers_of(store, *parameter))
        << parameter->spec.name;
  }

  ParameterStore other;
  declare_vit(other, 5);
  const EncoderLoading loading = there.load_into(other);
  EXPECT_EQ(loading.replaced, (std::vector<std::string>{"classifier.weight", "classifier.bias"}));
  EXPECT_EQ(loading.labels_there, 3);
}

TEST(HuggingFaceImageClassifier, RefusesWhatBriskDoesNotCompute) {
  const test::ScratchFolder scratch;
  ParameterStore store;
  declare_vit(store);
  const std::string folder = scratch / "vit";
  write_huggingface_image_classifier(folder, vit_options(), {}, store, SafetensorsType::f32);
  const auto problem = [&](const std::string& config) {
    write_file_atomically(folder + "/config.json", config);
    return message_of<UserError>([&] { HuggingFaceImageClassifier{folder}; });
  };
  EXPECT_TRUE(has(problem(R"({"model_type": "deit"})"), "a DeiT has a second special row"));
  EXPECT_TRUE(has(problem(R"({"model_type": "vit", "hidden_act": "relu"})"), "hidden_act"));
  EXPECT_TRUE(has(problem(R"({"model_type": "vit", "num_channels": 1})"), "num_channels"));
  EXPECT_TRUE(has(problem(R"({"model_type": "beit", "image_size": [224, 160]})"), "a square"));
  EXPECT_TRUE(has(problem(R"({"model_type": "swin", "use_absolute_embeddings": true})"), "use_absolute_embeddings"));
  EXPECT_TRUE(has(problem(R"({"model_type": "swin", "depths": [2, 2]})"), "a number for each stage"));
  EXPECT_TRUE(has(problem(R"({"model_type": "vit", "patch_size": 0})"), "patch_size"));

  ModelOptions model = vit_options();
  model.pooling = "mean";
  EXPECT_TRUE(has(message_of<UserError>([&] { check_huggingface_image_classifier(model); }), "class token"));
  model.type = model.image_encoder = "swin";
  model.encoder_depths = model.encoder_stage_heads = {1, 1};
  model.encoder_final_norm = false;
  model.num_labels = 3;
  EXPECT_TRUE(has(message_of<UserError>([&] { check_huggingface_image_classifier(model); }), "final norm"));
}

}  // namespace
}  // namespace brisk
