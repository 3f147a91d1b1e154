// DIMTDA against PyTorch (scripts/make_dimtda_golden.py): logits, every gradient and ten AdamW steps; and against itself:
// recomputed, on more threads, decoded from caches.
#include "models/dimtda.h"

#include <gtest/gtest.h>

#include <cmath>

#include "infer/answer/conditional_generator.h"
#include "optim/adamw.h"
#include "support/golden_file.h"
#include "support/image_to_text_job.h"
#include "support/optimizer_step.h"

namespace brisk {
namespace {

using namespace brisk::testing;

constexpr int64_t kDimtdaVocabulary = 23;

// The script's.
DimtdaConfig tiny_dimtda(double dropout = 0) {
  DimtdaConfig config;
  config.page.kind = ImageEncoderConfig::Kind::swin;
  config.page.image = ImageInput::resized(16, 8, 2, false);
  config.page.d_model = 4;
  config.page.stages = {{.num_layers = 2, .num_heads = 1, .d_ff = 16}, {.num_layers = 1, .num_heads = 2, .d_ff = 32}};
  config.page.window = 2;
  config.page.positions = ImageEncoderConfig::Positions::none;
  config.page.norm_epsilon = 1e-5;
  config.page.final_norm = false;
  config.layout.kind = ImageEncoderConfig::Kind::beit;
  config.layout.image = ImageInput::resized(8, 8, 4, true);
  config.layout.d_model = 8;
  config.layout.num_layers = 1;
  config.layout.num_heads = 2;
  config.layout.d_ff = 12;
  config.layout.layer_scale = 0.1;
  config.layout.final_norm = false;
  config.queries = 3;
  config.query_layers = DimtdaConfig::query_layers_with(dropout, dropout);
  config.query_sizes = {
      .d_model = 8, .num_layers = 1, .num_heads = 2, .head_width = 4, .d_ff = 12, .max_length = 3, .types = 0};
  StackOptions& options = config.decoder.options;
  options = config.query_layers;
  options.positions = StackOptions::Positions::learned;
  options.head_bias = StackOptions::HeadBias::trained;
  options.head_transform = true;
  config.decoder.sizes = {
      .d_model = 12, .num_layers = 1, .num_heads = 3, .head_width = 4, .d_ff = 20, .max_length = 6, .types = 1};
  config.decoder.vocab_size = kDimtdaVocabulary;
  return config;
}

class DimtdaGoldenFile : public GoldenFile {
 public:
  DimtdaGoldenFile() : GoldenFile("dimtda") {}

  StepBatch step(size_t number) const {
    const RandomImages images(tiny_dimtda().image_layout(), {}, kDimtdaVocabulary);
    StepBatch step;
    MicroBatch& batch = step.micro_batches.emplace_back(images.empty());
    const std::vector<int32_t> lengths = integers("lengths", number), tokens = integers("tokens", number),
                               targets = integers("targets", number);
    const std::vector<Image> pages = files("pages", number, 16, 8), layouts = files("layouts", number, 8, 8);
    for (size_t i = 0, at = 0; i < lengths.size(); ++i) {
      const auto count = static_cast<size_t>(lengths[i]);
      images.append({pages[i], layouts[i]}, {tokens.data() + at, count}, {targets.data() + at, count},
                    static_cast<int32_t>(i), batch);
      at += count;
    }
    step.valid_tokens = batch.sets[kTargetSet].rows();
    return step;
  }

 private:
  std::vector<Image> files(const std::string& name, size_t step, int64_t height, int64_t width) const {
    const std::vector<int32_t> packed = integers(name, step);
    const auto* bytes = reinterpret_cast<const uint8_t*>(packed.data());
    std::vector<Image> images;
    const auto size = static_cast<size_t>(height * width * kColors);
    for (size_t at = 0; at < packed.size() * sizeof(int32_t); at += size) {
      images.emplace_back(height, width).pixels.assign(bytes + at, bytes + at + size);
    }
    return images;
  }
};

void compare_dimtda(const ImageToTextOptions& options, double tolerance) {
  const DimtdaGoldenFile golden;
  const DimtdaConfig config = tiny_dimtda();
  const double of_gradients = options.type == DType::f32 ? tolerance : 4 * tolerance;
  ImageToTextJob job(config, config.image_layout(), options);
  golden.load_parameters(job.parameters());
  refresh_compute_copies(job.parameters());
  EXPECT_LE(distance(job.logits(golden.step(0).micro_batches[0]), golden.numbers("logits")), tolerance) << "logits";
  const std::vector<float> losses = golden.numbers("losses"), rates = golden.numbers("rates"),
                           norms = golden.numbers("gradient_norms");
  ASSERT_EQ(losses.size(), 10u);
  AdamW adamw(job.parameters(), golden.adamw());
  OptimizerStep optimizer_step(job.parameters(), adamw, golden.number("max_grad_norm"));
  for (size_t i = 0; i < losses.size(); ++i) {
    const double loss = job.run(golden.step(i));
    const double norm = optimizer_step.run(static_cast<int64_t>(i) + 1, static_cast<double>(rates[i]));
    EXPECT_NEAR(loss, losses[i], tolerance * losses[i]) << "loss of step " << i + 1;
    EXPECT_NEAR(norm, norms[i], of_gradients * norms[i]) << "gradient norm of step " << i + 1;
    for (const auto& parameter : job.parameters().all()) {
      if (i > 0 || !parameter->spec.trained) continue;
      EXPECT_LE(distance(job.gradient(*parameter), golden.numbers("gradients/" + parameter->spec.name)), of_gradients)
          << "gradient of " << parameter->spec.name;
    }
  }
}

TEST(DimtdaGolden, HasTheSameLogitsGradientsAndLossesOnTheReference) {
  compare_dimtda({.backend = Backend::reference}, 1e-5);
}

TEST(DimtdaGolden, HasTheSameLogitsGradientsAndLossesWithEveryInstructionSet) {
  for_each_isa([&](Isa) { compare_dimtda({}, 1e-5); });
}

TEST(DimtdaGolden, HasTheSameLogitsGradientsAndLossesRecomputed) { compare_dimtda({.checkpoint_every = 1}, 1e-5); }

TEST(DimtdaGolden, IsCloseInBf16WithEveryInstructionSet) {
  for_each_isa([&](Isa) { compare_dimtda({.type = DType::bf16}, 6e-2); });
}

TEST(DimtdaGolden, HasTheSameLogitsGradientsAndLossesOnAGpu) {
  std::string why;
  if (cuda_gpus(&why).empty()) GTEST_SKIP() << "no NVIDIA GPU to run this on: " << why;
  compare_dimtda({.backend = Backend::cuda, .device = &cuda_device()}, 1e-5);
  compare_dimtda({.type = DType::bf16, .backend = Backend::cuda, .device = &cuda_device()}, 6e-2);
  compare_dimtda({.type = DType::f16, .backend = Backend::cuda, .device = &cuda_device()}, 1e-2);
}

TEST(Dimtda, LearnsTheSameHoweverItIsComputed) {
  const DimtdaConfig config = tiny_dimtda(0.1);
  const RandomImages images(config.image_layout(), {5, 1, 4, 6, 2}, kDimtdaVocabulary);
  ImageToTextJob job(config, config.image_layout());
  const double loss = job.run(images.step());
  const std::vector<float> gradients = job.gradients();
  for (const int64_t every : {1, 2}) {
    ImageToTextJob recomputed(config, config.image_layout(), {.checkpoint_every = every});
    EXPECT_EQ(recomputed.run(images.step()), loss) << every;
    EXPECT_EQ(recomputed.gradients(), gradients) << every;
    EXPECT_LE(recomputed.arena_bytes(), job.arena_bytes()) << every;
  }
  ImageToTextJob threaded(config, config.image_layout(), {.threads = 2});
  EXPECT_NEAR(threaded.run(images.step()), loss, 1e-6 * loss);
  EXPECT_LE(distance(threaded.gradients(), gradients), 1e-5);
  ImageToTextJob one_by_one(config, config.image_layout());
  EXPECT_NEAR(one_by_one.run(images.step(1)), loss, 1e-6 * loss);
  EXPECT_LE(distance(one_by_one.gradients(), gradients), 1e-5);
}

// Greedy texts of so many images that they are encoded in several turns, compared with what each has computed anew.
TEST(Dimtda, DecodesFromCachesWhatEachImageHasAlone) {
  const DimtdaConfig config = tiny_dimtda();
  constexpr int64_t kMany = 150, kMostTokens = 4, kStart = 0, kEnd = 1;  // 150 x 32 rows of patches
  const RandomImages images(config.image_layout(), std::vector<int>(kMany, 1), kDimtdaVocabulary);
  ImageToTextJob job(config, config.image_layout(), {.images = 1});
  PairFrame frame;
  frame.start = kStart;
  frame.end = kEnd;
  ConditionalGenerator generator(job.model(), job.parameters(), frame, kDimtdaVocabulary);
  std::vector<std::vector<TokenId>> texts(kMany);
  const std::vector<ConditionalGenerator::Request> requests(kMany, {.most_tokens = kMostTokens});
  generator.generate(images, job.layout(), requests, {.beam = 1},
                     [&](int64_t index, std::span<const BeamSearch::Found> found) {
                       texts[static_cast<size_t>(index)] = found.front().tokens;
                     });
  for (int64_t index : {0, 1, 77, 149}) {
    MicroBatch batch = images.empty();
    std::vector<TokenId> text = {kStart};
    while (std::ssize(text) <= kMostTokens) {
      batch.clear();
      images.append(index, 0, 0, batch);
      MicroBatch::Set& target = batch.sets[kTargetSet];
      target.clear();
      append_rows(target, text, std::vector<TokenId>(text.size(), 0), 0);
      const std::vector<float> logits = job.logits(batch);
      const auto last = logits.end() - kDimtdaVocabulary;
      const auto best = std::max_element(last + 1, logits.end());  // not the start token
      text.push_back(static_cast<TokenId>(best - last));
      if (text.back() == kEnd) break;
    }
    if (text.back() == kEnd) text.pop_back();
    EXPECT_EQ(texts[static_cast<size_t>(index)], std::vector<TokenId>(text.begin() + 1, text.end())) << index;
  }
}

}  // namespace
}  // namespace brisk
