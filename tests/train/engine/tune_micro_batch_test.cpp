#include "train/engine/tune_micro_batch.h"

#include <gtest/gtest.h>

#include "support/tiny_job.h"

namespace brisk {
namespace {

TEST(MicroBatch, TriesTheUsualSizeAndItsNeighbours) {
  EXPECT_EQ(micro_batch_candidates(128, 1000), (std::vector<int64_t>{4096, 2048, 8192, 1024, 16384, 512}));
}

TEST(MicroBatch, TriesLargerSizesWhereTheUsualOneIsAGpus) {
  EXPECT_EQ(micro_batch_candidates(128, 100000, kGpuMicroBatchTokens),
            (std::vector<int64_t>{65536, 32768, 131072, 16384, 262144, 8192}));
  EXPECT_EQ(micro_batch_candidates(128, 64, kGpuMicroBatchTokens), (std::vector<int64_t>{8192}));
}

TEST(MicroBatch, NeverHoldsLessThanASequenceOrMoreThanAStep) {
  EXPECT_EQ(micro_batch_candidates(128, 8), (std::vector<int64_t>{1024, 512}));
  EXPECT_EQ(micro_batch_candidates(3000, 2), (std::vector<int64_t>{4096, 3000, 6000}));
  EXPECT_EQ(micro_batch_candidates(50000, 4), (std::vector<int64_t>{50000}));
}

TEST(MicroBatch, IsAsLargeAsNearlyAllStepsBeforeItIsMeasured) {
  const LengthFigures even{128, 128};
  EXPECT_EQ(micro_batch_rows(0, 4096, 32, even), 4096);
  EXPECT_EQ(micro_batch_rows(0, 4096, 16, even), 2048);
  EXPECT_EQ(micro_batch_rows(0, 4096, 1000, even), 4096);
  EXPECT_EQ(micro_batch_rows(512, 4096, 32, even), 512);
  EXPECT_EQ(micro_batch_rows(8, 4096, 32, even), 128);
  EXPECT_EQ(micro_batch_rows(9000, 4096, 32, even), 4096);
  EXPECT_EQ(micro_batch_rows(0, kGpuMicroBatchTokens, 256, even), 32768);
  EXPECT_EQ(micro_batch_rows(0, kGpuMicroBatchTokens, 1000, even), 65536);
  // Of up to 256 rows, 110 on average, give or take 70: 256 of them are 28,160, give or take 1,120.
  const LengthFigures ragged{256, 110, 4900};
  EXPECT_EQ(rows_of_nearly_all_steps(256, ragged), 33792);
  EXPECT_EQ(micro_batch_rows(0, kGpuMicroBatchTokens, 256, ragged), 33792);
  EXPECT_EQ(micro_batch_rows(60000, kGpuMicroBatchTokens, 256, ragged), 60000);
  EXPECT_EQ(micro_batch_rows(0, kGpuMicroBatchTokens, 16, ragged), 4096);  // not worth saving
  EXPECT_EQ(micro_batch_rows(0, kGpuMicroBatchTokens, 2, ragged), 512);
  EXPECT_EQ(micro_batch_rows(0, kGpuMicroBatchTokens, 16, {9000, 110, 4900}), 9000);
}

TEST(MicroBatch, CountsSourcesAsOftenAsTheyAreDrawn) {
  const testing::Corpus corpus = testing::tiny_corpus(800);
  const std::shared_ptr<const Sequences> sequences = corpus.sequences();
  const int64_t half = sequences->count() / 2, others = sequences->count() - half;
  const LengthFigures plain = length_figures(*sequences);
  const std::vector<SourceShare> once = {{.chunks = half, .draws = half, .rows = 5 * half},
                                         {.chunks = others, .draws = others, .rows = 20 * others}};
  EXPECT_EQ(length_figures(*sequences, once).mean, plain.mean);
  EXPECT_EQ(length_figures(*sequences, once).variance, plain.variance);
  std::vector<SourceShare> often = once;
  often[1].draws = 3 * others;
  const LengthFigures weighted = length_figures(*sequences, often);
  const auto first = static_cast<double>(half), second = 3.0 * static_cast<double>(others);
  EXPECT_NEAR(weighted.mean, (5 * first + 20 * second) / (first + second), 1e-9);
  EXPECT_NEAR(weighted.variance, weighted.mean * (static_cast<double>(plain.longest) - weighted.mean), 1e-6);
}

TEST(MicroBatch, KnowsHowLongSequencesAre) {
  const testing::Corpus corpus = testing::tiny_corpus(800);
  const std::shared_ptr<const Sequences> sequences = corpus.sequences();
  double sum = 0, squares = 0;
  int64_t longest = 0;
  for (int64_t i = 0; i < sequences->count(); ++i) {
    const auto rows = static_cast<double>(sequences->rows(i));
    sum += rows;
    squares += rows * rows;
    longest = std::max(longest, sequences->rows(i));
  }
  const auto count = static_cast<double>(sequences->count());
  const LengthFigures figures = length_figures(*sequences);
  EXPECT_EQ(figures.longest, longest);
  EXPECT_NEAR(figures.mean, sum / count, 1e-9);
  EXPECT_NEAR(figures.variance, squares / count - sum / count * sum / count, 1e-6);
}

TEST(MicroBatch, IsOneOfThoseThatFitAndSaysWhatWasMeasured) {
  const testing::Threads threads(1);
  const testing::Corpus corpus = testing::tiny_corpus(800);
  EngineOptions options = testing::tiny_options(testing::gpt_shape());
  std::vector<int64_t> tried;
  const auto fits = [&](const EngineOptions& sized) {
    tried.push_back(sized.capacity.rows);
    return sized.capacity.rows <= 1024;
  };
  const MicroBatchChoice choice = measure_micro_batch(options, corpus.sequences(), {.sequences_per_step = 200}, fits);
  EXPECT_EQ(tried, micro_batch_candidates(24, 200));
  EXPECT_TRUE(choice.tokens == 512 || choice.tokens == 1024) << choice.tokens;
  for (const char* part : {"fastest measured", "512 ", "1024 ", "4096 does not fit", "not the result"})
    EXPECT_NE(choice.reason.find(part), std::string::npos) << choice.reason;
}

}  // namespace
}  // namespace brisk
