// Which number format a job gets on the device it runs on.
#include "infer/precision.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "checkpoint/checkpoint.h"
#include "infer/tuned_settings.h"
#include "support/scratch_folder.h"

namespace brisk {
namespace {

const ModelWidths kWidths = {.d_model = 64, .d_ff = 128};

TEST(Precision, OfGpusIsRefusedOnTheCpuWithWhatToUse) {
  for (const char* asked : {"tf32", "fp8"}) {
    const std::string message = test::message_of<UserError>([&] { choose_precision(asked, kWidths, cpu_device()); });
    EXPECT_NE(message.find(asked), std::string::npos) << message;
    EXPECT_NE(message.find("NVIDIA GPU"), std::string::npos) << message;
    EXPECT_NE(message.find("use fp32, bf16 or auto"), std::string::npos) << message;
  }
}

TEST(Precision, IsKeptByACheckpoint) {
  for (const auto& [type, products, name] : {std::tuple{DType::f32, GemmFormat::own, "fp32"},
                                             {DType::bf16, GemmFormat::own, "bf16"},
                                             {DType::f32, GemmFormat::tf32, "tf32"},
                                             {DType::f16, GemmFormat::own, "fp16"},
                                             {DType::bf16, GemmFormat::fp8, "fp8"}}) {
    EXPECT_EQ(precision_name(type, products), name);
    const TunedSettings saved{.compute_type = type, .micro_batch_tokens = 64, .products = products};
    const TunedSettings again = tuned_settings_from_json(tuned_settings_to_json(saved), "here");
    EXPECT_EQ(again.compute_type, type) << name;
    EXPECT_EQ(again.products, products) << name;
  }
}

TEST(Precision, OfACheckpointWithoutItsNameIsItsType) {
  const TunedSettings old = tuned_settings_from_json(R"({"compute_type": "bf16", "micro_batch_tokens": 64})", "here");
  EXPECT_EQ(old.compute_type, DType::bf16);
  EXPECT_EQ(old.products, GemmFormat::own);
}

TEST(Precision, WeightsWithoutMastersAreForGpusAndBf16) {
  EXPECT_NO_THROW(check_master_weights(true, "fp32", cpu_device()));
  const std::string message = test::message_of<UserError>([] { check_master_weights(false, "bf16", cpu_device()); });
  EXPECT_NE(message.find("training.master_weights"), std::string::npos) << message;
  EXPECT_NE(message.find("NVIDIA GPU"), std::string::npos) << message;
}

// A hidden matrix, one that is none, and a bias.
void fill_store(ParameterStore& store, ParameterStore::Masters masters) {
  const Initial normal{Initial::Kind::normal, 0.1};
  store.add({.name = "layer", .rows = 6, .cols = 16, .multiplies = true, .initial = normal, .hidden = true});
  store.add({.name = "head", .rows = 5, .cols = 7, .multiplies = true, .initial = normal});
  store.add({.name = "bias", .rows = 1, .cols = 6, .initial = normal});
  store.allocate(cpu_device(), {}, DType::bf16, ParameterStore::Purpose::training, ParameterStore::Moments::two,
                 masters);
  store.initialise(3);
}

std::vector<float> numbers_of(const ParameterStore& store, const std::string& name) {
  const Parameter* parameter = store.find(name);
  std::vector<float> numbers(static_cast<size_t>(parameter->count()));
  store.read(*parameter, 0, numbers);
  return numbers;
}

TEST(WeightsWithoutMasters, AreBf16WhereTheOthersAreAsBefore) {
  ParameterStore with, without;
  fill_store(with, ParameterStore::Masters::all);
  fill_store(without, ParameterStore::Masters::not_of_hidden);
  EXPECT_FALSE(without.find("layer")->master);
  EXPECT_EQ(without.find("layer")->compute.type, DType::bf16);
  std::vector<float> rounded = numbers_of(with, "layer");
  for (float& number : rounded) number = to_float(to_bf16(number));
  EXPECT_EQ(numbers_of(without, "layer"), rounded);
  EXPECT_EQ(numbers_of(without, "head"), numbers_of(with, "head"));
  EXPECT_EQ(numbers_of(without, "bias"), numbers_of(with, "bias"));
  const auto bytes = [&](ParameterStore::Masters masters) {
    return with.bytes(DType::bf16, ParameterStore::Purpose::training, ParameterStore::Moments::two, masters);
  };
  EXPECT_EQ(bytes(ParameterStore::Masters::all) - bytes(ParameterStore::Masters::not_of_hidden), 6 * 16 * 4);
}

TEST(WeightsWithoutMasters, ComeBackFromACheckpointToTheBit) {
  const test::ScratchFolder folder;
  ParameterStore saved, loaded;
  fill_store(saved, ParameterStore::Masters::not_of_hidden);
  ASSERT_TRUE(save_checkpoint(folder.path(), saved, {.step = 5}).ok());
  fill_store(loaded, ParameterStore::Masters::not_of_hidden);
  std::vector<float> zeros(6 * 16);
  loaded.write(*loaded.find("layer"), 0, zeros);
  load_checkpoint(*latest_checkpoint(folder.path()), loaded);
  for (const char* name : {"layer", "head", "bias"})
    EXPECT_EQ(numbers_of(loaded, name), numbers_of(saved, name)) << name;
  // And into a store that has masters: the file is the same.
  ParameterStore other;
  fill_store(other, ParameterStore::Masters::all);
  load_checkpoint(*latest_checkpoint(folder.path()), other);
  EXPECT_EQ(numbers_of(other, "layer"), numbers_of(saved, "layer"));
}

}  // namespace
}  // namespace brisk
