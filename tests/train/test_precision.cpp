// Which number format a job gets on the device it runs on.
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/scratch_folder.h"
#include "train/choices.h"
#include "train/precision.h"

namespace brisk {
namespace {

const ModelWidths kWidths = {.d_model = 64, .d_ff = 128};

TEST(Precision, OfCardsIsRefusedOnTheCpuWithWhatToUse) {
  for (const char* asked : {"tf32", "fp8"}) {
    const std::string message = test::message_of<UserError>([&] { choose_precision(asked, kWidths, cpu_device()); });
    EXPECT_NE(message.find(asked), std::string::npos) << message;
    EXPECT_NE(message.find("NVIDIA cards"), std::string::npos) << message;
    EXPECT_NE(message.find("use fp32, bf16 or auto"), std::string::npos) << message;
  }
}

TEST(Precision, IsKeptByACheckpoint) {
  for (const auto& [type, products, name] : {std::tuple{DType::f32, ProductFormat::own, "fp32"},
                                             {DType::bf16, ProductFormat::own, "bf16"},
                                             {DType::f32, ProductFormat::tf32, "tf32"},
                                             {DType::bf16, ProductFormat::fp8, "fp8"}}) {
    EXPECT_EQ(precision_name(type, products), name);
    const Choices saved{.compute_type = type, .micro_batch_tokens = 64, .products = products};
    const Choices again = choices_from_json(choices_to_json(saved), "here");
    EXPECT_EQ(again.compute_type, type) << name;
    EXPECT_EQ(again.products, products) << name;
  }
}

TEST(Precision, OfACheckpointWithoutItsNameIsItsType) {
  const Choices old = choices_from_json(R"({"compute_type": "bf16", "micro_batch_tokens": 64})", "here");
  EXPECT_EQ(old.compute_type, DType::bf16);
  EXPECT_EQ(old.products, ProductFormat::own);
}

}  // namespace
}  // namespace brisk
