// brisk against transformers: logits, every gradient and ten AdamW steps of tiny classifiers of images of every kind, from the
// files that scripts/make_image_encoder_golden.py writes. fp32 within 1e-5, bf16 within 5e-2 of the exact values, norm-wise
// per tensor, and gradients of bf16 within 2e-1: some are of nine numbers.
#include <gtest/gtest.h>

#include <cstring>

#include "optim/adamw.h"
#include "support/golden_file.h"
#include "support/image_job.h"
#include "support/numeric.h"
#include "support/optimizer_step.h"

namespace brisk {
namespace {

using namespace brisk::testing;

class ImageGoldenFile : public GoldenFile {
 public:
  explicit ImageGoldenFile(const std::string& name)
      : GoldenFile("images/" + name), config_(tiny_image_classifier(name)) {}

  const ImageClassifierConfig& config() const { return config_; }
  MicroBatch batch(size_t step) const {
    MicroBatch batch;
    const std::vector<int32_t> images = integers("images", step), labels = integers("labels", step);
    for (size_t i = 0; i < images.size(); ++i) {
      const std::vector<int32_t> words = integers("pixels", static_cast<size_t>(images[i]));
      std::vector<uint8_t> pixels(4 * words.size());
      std::memcpy(pixels.data(), words.data(), pixels.size());
      add_image(config_, pixels, labels[i], batch);
    }
    return batch;
  }

 private:
  ImageClassifierConfig config_;
};

void compare(const ImageGoldenFile& golden, const ImageJobOptions& options, double tolerance) {
  const double of_gradients = options.type == DType::bf16 ? 2e-1 : tolerance;
  ImageJob job(golden.config(), options);
  golden.load_parameters(job.parameters());
  refresh_compute_copies(job.parameters());
  EXPECT_LE(distance(job.logits(golden.batch(0)), golden.numbers("logits")), tolerance) << "logits";
  const std::vector<float> losses = golden.numbers("losses"), rates = golden.numbers("rates"),
                           norms = golden.numbers("gradient_norms");
  ASSERT_EQ(losses.size(), 10u);
  AdamW adamw(job.parameters(), golden.adamw());
  OptimizerStep optimizer_step(job.parameters(), adamw, golden.number("max_grad_norm"));
  for (size_t i = 0; i < losses.size(); ++i) {
    const double loss = job.run({golden.batch(i)});
    const double norm = optimizer_step.run(static_cast<int64_t>(i) + 1, static_cast<double>(rates[i]));
    EXPECT_NEAR(loss, losses[i], tolerance * losses[i]) << "loss of step " << i + 1;
    EXPECT_NEAR(norm, norms[i], of_gradients * norms[i]) << "gradient norm of step " << i + 1;
    for (const auto& parameter : job.parameters().all()) {
      if (i > 0) continue;
      EXPECT_LE(distance(job.gradient(*parameter), golden.numbers("gradients/" + parameter->spec.name)), of_gradients)
          << "gradient of " << parameter->spec.name;
    }
  }
}

class ImageEncoderGolden : public ::testing::TestWithParam<const char*> {
 protected:
  const ImageGoldenFile golden_{GetParam()};
};

TEST_P(ImageEncoderGolden, HasTheSameLogitsGradientsAndLossesOnTheReference) {
  compare(golden_, {.backend = Backend::reference}, 1e-5);
}

TEST_P(ImageEncoderGolden, HasTheSameLogitsGradientsAndLossesWithEveryInstructionSet) {
  for_each_isa([&](Isa) { compare(golden_, {}, 1e-5); });
}

TEST_P(ImageEncoderGolden, HasTheSameLogitsGradientsAndLossesRecomputed) {
  compare(golden_, {.checkpoint_every = 1}, 1e-5);
}

TEST_P(ImageEncoderGolden, IsCloseInBf16WithEveryInstructionSet) {
  for_each_isa([&](Isa) { compare(golden_, {.type = DType::bf16}, 5e-2); });
}

TEST_P(ImageEncoderGolden, HasTheSameLogitsGradientsAndLossesOnAGpu) {
  std::string why;
  if (cuda_gpus(&why).empty()) GTEST_SKIP() << "no NVIDIA GPU to run this on: " << why;
  compare(golden_, {.backend = Backend::cuda, .device = &cuda_device()}, 1e-5);
  compare(golden_, {.type = DType::bf16, .backend = Backend::cuda, .device = &cuda_device()}, 5e-2);
}

TEST_P(ImageEncoderGolden, HasAsManyParameters) {
  ParameterStore store;
  const ImageClassifier model(golden_.config(), store);
  EXPECT_EQ(store.count(), golden_.integer("counted"));
}

INSTANTIATE_TEST_SUITE_P(Golden, ImageEncoderGolden, ::testing::Values("vit", "dit", "beit", "beit_shared", "swin"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace brisk
