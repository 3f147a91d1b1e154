#include "doctor/measure/gradient_file.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "tensor/device.h"

namespace brisk {
namespace {

class GradientFile : public ::testing::Test {
 protected:
  GradientFile() : folder_(std::filesystem::temp_directory_path() / ("gradient-" + std::to_string(::getpid()))) {
    std::filesystem::create_directory(folder_);
    large_ = store_.add({.name = "large", .rows = 3, .cols = 40});
    small_ = store_.add({.name = "small", .rows = 1, .cols = 5});
    store_.allocate(cpu_device(), {}, DType::f32, ParameterStore::Purpose::training);
    for (int64_t i = 0; i < large_->count(); ++i) large_->gradient.f32()[i] = static_cast<float>(i % 7 - 3);
    for (int64_t i = 0; i < small_->count(); ++i) small_->gradient.f32()[i] = 0.5F;
  }
  ~GradientFile() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& name, double loss = 2, double scaling = 1) {
    write_gradient(folder_ / name, loss, scaling, store_);
    return folder_ / name;
  }

  std::filesystem::path folder_;
  ParameterStore store_;
  Parameter *large_, *small_;
};

TEST_F(GradientFile, OfTheSameStepHasTheSameBits) {
  const StepProof proof = compare_gradients(write("a"), write("b"), 1e-3);
  EXPECT_TRUE(proof.same_bits);
  EXPECT_TRUE(proof.holds);
  EXPECT_EQ(proof.tensors, 2);
  EXPECT_EQ(proof.difference, 0);
}

TEST_F(GradientFile, MayDifferByRoundingAlone) {
  const std::string before = write("a");
  small_->gradient.f32()[2] *= 1.0001F;
  const StepProof rounded = compare_gradients(before, write("b"), 1e-3);
  EXPECT_FALSE(rounded.same_bits);
  EXPECT_TRUE(rounded.holds);
  EXPECT_EQ(rounded.worst_tensor, "small");
  small_->gradient.f32()[2] = 0.6F;  // a tenth of the tensor's norm, and little beside the large one
  const StepProof wrong = compare_gradients(before, write("c"), 1e-3);
  EXPECT_FALSE(wrong.holds);
  EXPECT_NEAR(wrong.worst_difference, 0.1 / (0.5 * std::sqrt(5.0)), 1e-4);
  EXPECT_LT(wrong.difference, 0.02);
}

TEST_F(GradientFile, OfAnotherLossDoesNotHold) {
  EXPECT_FALSE(compare_gradients(write("a", 2), write("b", 2.1), 1e-3).holds);
}

TEST_F(GradientFile, IsWrittenWithoutTheScaleOfTheLoss) {
  const std::string before = write("a");
  for (int64_t i = 0; i < large_->count(); ++i) large_->gradient.f32()[i] *= 8;
  for (int64_t i = 0; i < small_->count(); ++i) small_->gradient.f32()[i] *= 8;
  EXPECT_TRUE(compare_gradients(before, write("b", 2, 8), 1e-3).same_bits);
}

}  // namespace
}  // namespace brisk
