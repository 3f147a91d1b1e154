#include "models/image_encoder.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "models/model_costs.h"
#include "support/image_job.h"
#include "support/scratch_folder.h"

namespace brisk {
namespace {

using namespace brisk::testing;

constexpr const char* kImageShapes[] = {"vit", "dit", "beit", "beit_shared", "swin"};

// Nougat-small's: an image of 896 x 672 becomes 28 x 21 rows of 1,024 numbers.
ImageEncoderConfig nougat_small() {
  ImageEncoderConfig config;
  config.kind = ImageEncoderConfig::Kind::swin;
  config.image = ImageInput::resized(896, 672, 4, false);
  config.positions = ImageEncoderConfig::Positions::none;
  config.d_model = 128;
  config.stages = {{2, 4, 512}, {2, 8, 1024}, {14, 16, 2048}, {2, 32, 4096}};
  config.window = 7;
  config.norm_epsilon = 1e-5;
  config.final_norm = false;
  return config;
}

ImageEncoderConfig dit_base() {
  ImageEncoderConfig config;
  config.kind = ImageEncoderConfig::Kind::beit;
  config.image = ImageInput::resized(224, 224, 16, true);
  config.layer_scale = 0.1;
  config.final_norm = false;
  return config;
}

int64_t parameters_of(const ImageEncoderConfig& config) {
  ParameterStore store;
  const ImageEncoder encoder(config, store, "");
  return store.count();
}

TEST(ImageEncoder, HasAsManyParametersAsThoseThatArePublished) {
  EXPECT_EQ(parameters_of(nougat_small()), 74'120'824);
  EXPECT_EQ(nougat_small().rows(), 588);
  EXPECT_EQ(nougat_small().width(), 1024);
  EXPECT_EQ(nougat_small().fixed_rows(), (std::vector<int64_t>{112 * 84, 56 * 42, 28 * 21}));

  // transformers counts 2,304 more, which nothing reads: the mask token, and a norm of the mean that its encoder makes.
  EXPECT_EQ(parameters_of(dit_base()) + 768 + 2 * 768, 85'808'640);
  EXPECT_EQ(dit_base().rows(), 197);

  ImageEncoderConfig vit = dit_base();
  vit.kind = ImageEncoderConfig::Kind::vit;
  vit.layer_scale = 0;
  vit.final_norm = true;
  EXPECT_EQ(parameters_of(vit), 85'798'656) << "ViT-base, without a pooler";
}

// 2 FLOP for each weight and row, three times; and of each row with those of its window, 4 K forward and twice that back.
TEST(ImageEncoder, CountsItsOperations) {
  const ImageClassifierConfig config{.encoder = nougat_small(), .mean_pooling = true, .num_labels = 10};
  std::vector<RowMeans> sets = {{37632, 37632}, {1, 1, true}, {9408, 9408, true}, {2352, 2352, true}, {588, 588, true}};
  double attention = 0;
  for (const ComponentCost& cost : model_costs(config, sets)) {
    if (cost.component == "attention") attention = cost.flop_per_token;
  }
  double expected = 0;
  const double rows[] = {37632, 9408, 2352, 588}, widths[] = {128, 256, 512, 1024}, layers[] = {2, 2, 14, 2};
  // A shifted window is 49 rows, or the parts at the edges: (w - 1) 49 + (3 x 3 + 4 x 4) of each 7 along one axis.
  const double down[] = {32, 16, 8, 4}, across[] = {24, 12, 6, 3};
  for (size_t s = 0; s < 4; ++s) {
    const double shifted = ((down[s] - 1) * 49 + 25) * ((across[s] - 1) * 49 + 25), whole = rows[s] * 49;
    expected += 12 * widths[s] * layers[s] / 2 * (whole + shifted);
  }
  EXPECT_NEAR(attention * 37632, expected, 1e-9 * expected);
}

TEST(ImageEncoder, RefusesSizesThatDoNotFit) {
  ImageEncoderConfig config = nougat_small();
  config.image = ImageInput::resized(84, 84, 4, false);
  EXPECT_TRUE(test::has(test::message_of<UserError>([&] { check_image_encoder(config, "model"); }), "halved"));
  config.image = ImageInput::resized(512, 512, 4, false);
  EXPECT_EQ(test::message_of<UserError>([&] { check_image_encoder(config, "model"); }),
            "model: stage 1 has 128 x 128 patches, which are no whole windows of 7 x 7 (window_size): use images whose "
            "sides are multiples of 28 pixels, or another window_size");
  config = nougat_small();
  config.stages[1].num_heads = 7;
  EXPECT_TRUE(test::has(test::message_of<UserError>([&] { check_image_encoder(config, "model"); }),
                        "a width of 256 is not divisible by 7 attention heads (stage 2)"));
}

TEST(ImageEncoder, SeesEachImageByItself) {
  for (const char* shape : kImageShapes) {
    SCOPED_TRACE(shape);
    ImageJob job(tiny_image_classifier(shape));
    const std::vector<float> together = job.logits(image_batch(job.config(), {3, 7, 4}));
    for (const auto& [place, number] : {std::pair<size_t, int>{0, 3}, {1, 7}, {2, 4}}) {
      const std::vector<float> alone = job.logits(image_batch(job.config(), {number}));
      for (size_t c = 0; c < 3; ++c) EXPECT_NEAR(alone[c], together[3 * place + c], 1e-5);
    }
    const double loss = job.run({image_batch(job.config(), {3, 7, 4})});
    const std::vector<float> gradients = job.gradients();
    const double apart = job.run({image_batch(job.config(), {3}), image_batch(job.config(), {7, 4})});
    EXPECT_NEAR(apart, loss, 1e-6);
    EXPECT_LE(distance(job.gradients(), gradients), 1e-5);
  }
}

TEST(ImageEncoder, IsTheSameRecomputedAndWithTwoThreads) {
  for (const char* shape : kImageShapes) {
    SCOPED_TRACE(shape);
    ImageClassifierConfig config = tiny_image_classifier(shape);
    config.encoder.dropout = 0.1;
    config.encoder.attention_dropout = 0.2;
    ImageJob plain(config), recomputed(config, {.checkpoint_every = 1}), shared(config, {.threads = 2});
    const double loss = plain.run({image_batch(config, {1, 2, 3})});
    EXPECT_EQ(recomputed.run({image_batch(config, {1, 2, 3})}), loss);
    EXPECT_EQ(recomputed.gradients(), plain.gradients());
    EXPECT_LT(recomputed.arena_bytes(), plain.arena_bytes());
    EXPECT_EQ(shared.run({image_batch(config, {1, 2, 3})}), loss);
    EXPECT_EQ(shared.gradients(), plain.gradients());
  }
}

TEST(ImageEncoder, LeavesWhatIsFrozenAlone) {
  for (const char* shape : kImageShapes) {
    SCOPED_TRACE(shape);
    ImageClassifierConfig config = tiny_image_classifier(shape);
    ImageJob whole(config);
    config.encoder.frozen = config.encoder.layers();
    ImageJob frozen(config);
    EXPECT_NEAR(frozen.run({image_batch(config, {1, 2, 3})}), whole.run({image_batch(config, {1, 2, 3})}), 1e-6);
    for (const auto& parameter : frozen.parameters().all()) {
      const bool of_head = parameter->spec.name.starts_with("classifier") || parameter->spec.name.starts_with("pooled");
      EXPECT_EQ(parameter->spec.trained, of_head) << parameter->spec.name;
    }
    config.encoder.frozen = 1;
    ImageJob partly(config);
    partly.run({image_batch(config, {1, 2, 3})});
    for (const auto& parameter : partly.parameters().all()) {
      if (!parameter->spec.trained) continue;
      const Parameter& same = *whole.parameters().find(parameter->spec.name);
      EXPECT_LE(distance(partly.gradient(*parameter), whole.gradient(same)), 1e-6) << parameter->spec.name;
    }
  }
}

TEST(ImageEncoder, FingerprintsWhatDecidesTheFunction) {
  const ImageEncoderConfig config = nougat_small();
  ImageEncoderConfig other = config;
  other.dropout = 0.1;
  other.frozen = 3;
  EXPECT_EQ(other.fingerprint(), config.fingerprint());
  other.image.processing.mean[1] = 0.25f;
  EXPECT_NE(other.fingerprint(), config.fingerprint());
  other = config;
  other.stages[2].num_layers = 6;
  EXPECT_NE(other.fingerprint(), config.fingerprint());
}

}  // namespace
}  // namespace brisk
