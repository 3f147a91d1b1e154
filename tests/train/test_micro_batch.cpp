#include <gtest/gtest.h>

#include "train/micro_batch.h"
#include "train/tiny_job.h"

namespace brisk {
namespace {

TEST(MicroBatch, TriesTheUsualSizeAndItsNeighbours) {
  EXPECT_EQ(micro_batch_candidates(128, 1000), (std::vector<int64_t>{4096, 2048, 8192, 1024, 16384, 512}));
}

TEST(MicroBatch, TriesLargerSizesWhereTheUsualOneIsACards) {
  EXPECT_EQ(micro_batch_candidates(128, 100000, kCardMicroBatchTokens),
            (std::vector<int64_t>{65536, 32768, 131072, 16384, 262144, 8192}));
  EXPECT_EQ(micro_batch_candidates(128, 64, kCardMicroBatchTokens), (std::vector<int64_t>{8192}));
}

TEST(MicroBatch, NeverHoldsLessThanASequenceOrMoreThanAStep) {
  EXPECT_EQ(micro_batch_candidates(128, 8), (std::vector<int64_t>{1024, 512}));
  EXPECT_EQ(micro_batch_candidates(3000, 2), (std::vector<int64_t>{4096, 3000, 6000}));
  EXPECT_EQ(micro_batch_candidates(50000, 4), (std::vector<int64_t>{50000}));
}

TEST(MicroBatch, IsAsLargeAsNearlyAllStepsBeforeItIsMeasured) {
  const LengthFigures even{128, 128};
  EXPECT_EQ(micro_batch_rows(0, nullptr, 32, even), 4096);
  EXPECT_EQ(micro_batch_rows(0, nullptr, 16, even), 2048);
  EXPECT_EQ(micro_batch_rows(0, nullptr, 1000, even), kMicroBatchTokens);
  EXPECT_EQ(micro_batch_rows(512, nullptr, 32, even), 512);
  EXPECT_EQ(micro_batch_rows(8, nullptr, 32, even), 128);
  EXPECT_EQ(micro_batch_rows(9000, nullptr, 32, even), 4096);
  // Of 20 to 256 rows, 110 on average, give or take 70: 16 of them, at a time, are less than 3,200. A processor's
  // usual size is not more than what is worth saving.
  EXPECT_EQ(micro_batch_rows(0, nullptr, 16, {256, 110, 4900}), 4096);
  EXPECT_EQ(micro_batch_rows(0, nullptr, 2, {256, 110, 4900}), 512);
  EXPECT_EQ(micro_batch_rows(0, nullptr, 16, {9000, 110, 4900}), 9000);
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
  for (const char* part : {"fastest measured", "512 ", "1024 ", "4096 does not fit", "not the maths"})
    EXPECT_NE(choice.reason.find(part), std::string::npos) << choice.reason;
}

}  // namespace
}  // namespace brisk
