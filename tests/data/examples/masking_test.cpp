#include "data/examples/masking.h"

#include <gtest/gtest.h>

#include <set>

#include "data/examples/text_frame.h"
#include "support/framed_tokenizer.h"

namespace brisk {
namespace {

class Masking : public ::testing::Test {
 protected:
  MicroBatch masked(const std::string& text, const MaskingOptions& options, int64_t epoch = 0,
                    int64_t index = 0) const {
    MicroBatch batch;
    append(text, options, epoch, index, 0, batch);
    return batch;
  }
  void append(const std::string& text, const MaskingOptions& options, int64_t epoch, int64_t index, int32_t sequence,
              MicroBatch& batch) const {
    std::vector<TokenId> tokens;
    tokenizer_.encode(text, tokens);
    TextFrame(tokenizer_, false).append({tokens, {}}, 1 << 20, sequence, batch);
    Masker(tokenizer_, options).append_picked(epoch, index, batch);
  }

  FramedTokenizer tokenizer_;
};

TEST_F(Masking, PicksItsShareOfTheTokensAndKeepsWhatTheyWere) {
  const std::string text(200, 'a');
  const MicroBatch batch = masked(text, {});
  ASSERT_EQ(batch.sets[1].rows(), 30);
  EXPECT_EQ(batch.sets[1].starts, (std::vector<int32_t>{0, 30}));
  EXPECT_EQ(batch.sets[1].longest, 30);
  EXPECT_TRUE(std::is_sorted(batch.sets[1].source.begin(), batch.sets[1].source.end()));
  EXPECT_EQ(std::set<int32_t>(batch.sets[1].source.begin(), batch.sets[1].source.end()).size(), 30u);
  for (size_t i = 0; i < 30; ++i) {
    EXPECT_EQ(batch.sets[1].targets[i], 'a');
    EXPECT_EQ(batch.sets[1].position[i], batch.sets[1].source[i]);
    EXPECT_GE(batch.sets[1].source[i], 1);  // neither of the special tokens
    EXPECT_LE(batch.sets[1].source[i], 200);
  }
}

TEST_F(Masking, EightInTenAreMaskedOneIsReplacedOneStays) {
  const std::string text(100000, 'a');
  const MicroBatch batch = masked(text, {.probability = 0.3});
  int64_t stars = 0, kept = 0, others = 0;
  for (const int32_t row : batch.sets[1].source) {
    const int32_t token = batch.sets[0].tokens[static_cast<size_t>(row)];
    ++(token == 259 ? stars : token == 'a' ? kept : others);
  }
  EXPECT_EQ(batch.sets[1].rows(), 30000);
  EXPECT_NEAR(static_cast<double>(stars), 24000, 350);  // 5 sigma of 69
  EXPECT_NEAR(static_cast<double>(kept), 3000, 260);
  EXPECT_NEAR(static_cast<double>(others), 3000, 260);
  int64_t changed = 0;
  for (int32_t token : batch.sets[0].tokens) changed += token != 'a';
  EXPECT_EQ(changed - 2, stars + others);  // nothing else was touched
}

TEST_F(Masking, EveryPlaceIsPickedEquallyOften) {
  const std::string text(20, 'a');
  std::vector<int64_t> times(22, 0);
  for (int64_t index = 0; index < 4000; ++index) {
    const MicroBatch batch = masked(text, {}, 0, index);
    for (const int32_t row : batch.sets[1].source) ++times[static_cast<size_t>(row)];
  }
  for (size_t row = 1; row <= 20; ++row) EXPECT_NEAR(static_cast<double>(times[row]), 600, 120) << row;
}

TEST_F(Masking, DrawsDependOnSeedEpochAndIndexAlone) {
  const std::string text = "the quick brown fox jumps over the lazy dog";
  const MicroBatch alone = masked(text, {}, 3, 5);
  MicroBatch packed;
  append("something before it", {}, 3, 4, 8, packed);
  append(text, {}, 3, 5, 9, packed);
  const auto begin = static_cast<std::ptrdiff_t>(packed.sets[0].starts[1]);
  EXPECT_EQ(std::vector<int32_t>(packed.sets[0].tokens.begin() + begin, packed.sets[0].tokens.end()),
            alone.sets[0].tokens);
  std::vector<int32_t> positions(packed.sets[1].position.begin() + packed.sets[1].starts[1],
                                 packed.sets[1].position.end());
  EXPECT_EQ(positions, alone.sets[1].position);
  EXPECT_EQ(packed.sets[1].sequence.back(), 9);
  EXPECT_NE(masked(text, {}, 4, 5).sets[1].source, alone.sets[1].source);
  EXPECT_NE(masked(text, {}, 3, 6).sets[1].source, alone.sets[1].source);
  EXPECT_NE(masked(text, {.seed = 2}, 3, 5).sets[1].source, alone.sets[1].source);
}

TEST_F(Masking, WholeWordsArePickedTogether) {
  std::string text;
  for (int i = 0; i < 50; ++i) text += "Word";  // a capital begins a word
  const MicroBatch batch = masked(text, {.whole_words = true});
  EXPECT_EQ(batch.sets[1].rows(), 28);  // of 30 wanted, whole words of 4
  for (size_t i = 0; i < batch.sets[1].source.size(); i += 4) {
    EXPECT_EQ((batch.sets[1].source[i] - 1) % 4, 0);
    EXPECT_EQ(batch.sets[1].source[i + 3], batch.sets[1].source[i] + 3);
  }
  EXPECT_EQ(masked(std::string(20, 'a'), {.whole_words = true}).sets[1].rows(), 3);  // one word, longer than the share
}

TEST_F(Masking, EverySequenceHasAPickedRow) {
  EXPECT_EQ(masked("a", {}).sets[1].rows(), 1);
  const MicroBatch empty = masked("", {});
  EXPECT_EQ(empty.sets[1].source, (std::vector<int32_t>{0}));
  EXPECT_EQ(shown(empty.sets[0].tokens), "<>");
  EXPECT_EQ(empty.sets[1].targets, (std::vector<int32_t>{257}));
}

TEST_F(Masking, NoMicroBatchPicksMoreThanItSays) {
  for (const double probability : {0.15, 0.3, 0.5}) {
    const Masker masker(tokenizer_, {.probability = probability});
    for (int length = 0; length < 60; ++length) {
      MicroBatch batch;
      for (int i = 0; i < 20; ++i)
        append(std::string(static_cast<size_t>(length), 'a'), {.probability = probability}, 0, i, i, batch);
      EXPECT_LE(batch.sets[1].rows(), most_picked(probability, masker.specials(), batch.rows())) << length;
    }
  }
  EXPECT_LE(most_picked(0.15, 2, 3000), 1500);
}

TEST_F(Masking, ATokenizerWithoutAMaskIsAnError) {
  EXPECT_HAS(user_error_of([] { Masker(ByteTokenizer(), {}); }), "no mask token");
}

}  // namespace
}  // namespace brisk
