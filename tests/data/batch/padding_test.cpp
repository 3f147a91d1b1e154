#include "data/batch/padding.h"

#include <gtest/gtest.h>

#include <map>

#include "base/error.h"
#include "data/batch/chunk_sequences.h"
#include "data/batch/loader.h"
#include "data/batch/packer.h"
#include "data/corpus/corpus.h"

namespace brisk {
namespace {

using Ids = std::vector<int32_t>;

// Documents of 1 to 9 rows, their ends included.
std::shared_ptr<const Sequences> documents() {
  std::vector<Ids> texts;
  for (int32_t i = 0; i < 30; ++i) texts.emplace_back(static_cast<size_t>(i * 7 % 9), i + 1);
  const auto stream = TokenStream::from_documents(texts, 0);
  return text_sequences(stream, whole_corpus(*stream, 16).chunks);
}

// Two texts, of 2 and of 3 rows, with every column there is; a set of their first and last rows.
MicroBatch two_texts() {
  MicroBatch batch;
  MicroBatch::Set& set = batch.sets[0];
  set.tokens = {5, 6, 7, 8, 9};
  set.types = {0, 1, 0, 1, 1};
  set.targets = {6, -1, 8, 9, -1};
  set.weights = {1, 2, 3, 4, 5};
  set.position = {0, 1, 0, 1, 2};
  set.sequence = {3, 3, 8, 8, 8};
  set.soft_targets = {.1f, .9f, .2f, .8f, .3f, .7f, .4f, .6f, .5f, .5f};
  for (int byte = 1; byte <= 5; ++byte) set.inputs.insert(set.inputs.end(), 4, std::byte(byte));
  set.end_sequence(2);
  set.end_sequence(5);
  MicroBatch::Set& picked = batch.derived_set(1, 0);
  picked.source = {0, 2, 4};
  picked.position = {0, 0, 2};
  picked.sequence = {3, 8, 8};
  picked.targets = {1, 0, 1};
  picked.end_sequence(1);
  picked.end_sequence(3);
  return batch;
}

TEST(Padding, FollowsTheRowsOfEachSequenceInEveryColumn) {
  MicroBatch batch = two_texts();
  pad(batch, {.to = Padding::To::lengths, .lengths = {4}});
  const MicroBatch::Set& set = batch.sets[0];
  EXPECT_EQ(set.starts, (Ids{0, 4, 8}));
  EXPECT_EQ(set.real_ends, (Ids{2, 7}));
  EXPECT_EQ(set.longest, 4);
  EXPECT_EQ(set.tokens, (Ids{5, 6, 0, 0, 7, 8, 9, 0}));
  EXPECT_EQ(set.types, (Ids{0, 1, 0, 0, 0, 1, 1, 0}));
  EXPECT_EQ(set.targets, (Ids{6, -1, -1, -1, 8, 9, -1, -1}));
  EXPECT_EQ(set.weights, (std::vector<float>{1, 2, 0, 0, 3, 4, 5, 0}));
  EXPECT_EQ(set.position, (Ids{0, 1, 2, 3, 0, 1, 2, 3}));
  EXPECT_EQ(set.sequence, (Ids{3, 3, 3, 3, 8, 8, 8, 8}));
  EXPECT_EQ(set.soft_targets, (std::vector<float>{.1f, .9f, .2f, .8f, 0, 0, 0, 0, .3f, .7f, .4f, .6f, .5f, .5f, 0, 0}));
  ASSERT_EQ(set.inputs.size(), 8u * 4);
  const int rows[] = {1, 2, 0, 0, 3, 4, 5, 0};
  for (size_t i = 0; i < set.inputs.size(); ++i) EXPECT_EQ(set.inputs[i], std::byte(rows[i / 4])) << i;
  EXPECT_EQ(batch.rows(), 8);
  EXPECT_EQ(batch.real_rows(), 5);
}

TEST(Padding, IsInNoDerivedSet) {
  MicroBatch batch = two_texts();
  pad(batch, {.to = Padding::To::longest});
  const MicroBatch::Set& picked = batch.sets[1];
  EXPECT_EQ(picked.source, (Ids{0, 3, 5}));  // the rows that they were
  EXPECT_EQ(picked.position, (Ids{0, 0, 2}));
  EXPECT_EQ(picked.starts, (Ids{0, 1, 3}));
  EXPECT_EQ(picked.targets, (Ids{1, 0, 1}));
  EXPECT_TRUE(picked.real_ends.empty());
  EXPECT_EQ(batch.sets[0].rows(), 6);
  EXPECT_EQ(batch.sets[0].longest, 3);
}

TEST(Padding, NoneLeavesABatchAsItIs) {
  MicroBatch batch = two_texts();
  pad(batch, {});
  EXPECT_EQ(batch.rows(), 5);
  EXPECT_EQ(batch.real_rows(), 5);
  EXPECT_TRUE(batch.sets[0].real_ends.empty());
}

TEST(Padding, IsNeverShorterThanASequence) {
  MicroBatch batch = two_texts();
  EXPECT_THROW(pad(batch, {.to = Padding::To::lengths, .lengths = {2}}), InternalError);
}

TEST(Padding, AClearedBatchHasNone) {
  MicroBatch batch = two_texts();
  pad(batch, {.to = Padding::To::longest});
  batch.clear();
  EXPECT_TRUE(batch.sets[0].real_ends.empty());
  EXPECT_EQ(batch.real_rows(), 0);
}

TEST(Packer, CountsPaddingAsRows) {
  const StepLengths lengths = {{4, 1, 1, 1, 4, 1}};
  // In their order: 4 1 1 is 12 rows with padding, 1 4 1 is too.
  EXPECT_EQ(divide_step(lengths, {12}, {.to = Padding::To::longest}), (std::vector<Ids>{{0, 1, 2}, {3, 4, 5}}));
  EXPECT_EQ(divide_step(lengths, {8}, {.to = Padding::To::longest}), (std::vector<Ids>{{0, 1}, {2, 3}, {4, 5}}));
  EXPECT_EQ(divide_step(lengths, {24}, {.to = Padding::To::longest}).size(), 1u);
  EXPECT_EQ(divide_step(lengths, {12}).size(), 1u);
  const Padding to_five{.to = Padding::To::lengths, .lengths = {5}};
  EXPECT_EQ(divide_step(lengths, {30}, to_five).size(), 1u);
  EXPECT_EQ(divide_step(lengths, {29}, to_five).size(), 2u);
  EXPECT_THROW(divide_step(lengths, {4}, to_five), InternalError);
  EXPECT_THROW(divide_step(lengths, {3}, {.to = Padding::To::longest}), InternalError);
  EXPECT_EQ(rows_of(lengths, Ids{0, 1}, {}), 5);
  EXPECT_EQ(rows_of(lengths, Ids{0, 1}, {.to = Padding::To::longest}), 8);
  EXPECT_EQ(rows_of(lengths, Ids{0, 1}, to_five), 10);
}

TEST(Loader, PadsItsMicroBatchesWithinTheirCapacityAndChangesNothingElse) {
  const std::shared_ptr<const Sequences> sequences = documents();
  constexpr int64_t kCapacity = 40;
  const LoaderOptions plain{.sequences_per_step = 12, .micro_batch_rows = {kCapacity}, .seed = 4, .workers = 0};
  LoaderOptions longest = plain, fixed = plain;
  longest.padding = {.to = Padding::To::longest};
  fixed.padding = {.to = Padding::To::lengths, .lengths = {16}};
  for (const LoaderOptions& options : {longest, fixed}) {
    Loader loader(sequences, options), ragged(sequences, plain);
    const StepBatch step = loader.next(), same = ragged.next();
    EXPECT_EQ(step.valid_tokens, same.valid_tokens);
    EXPECT_EQ(step.sequences, same.sequences);
    const auto tokens_of = [](const StepBatch& batch) {  // by sequence, without padding
      std::map<int32_t, Ids> tokens;
      for (const MicroBatch& micro_batch : batch.micro_batches) {
        const MicroBatch::Set& set = micro_batch.sets[0];
        for (size_t s = 0; s + 1 < set.starts.size(); ++s) {
          const int32_t begin = set.starts[s], end = set.real_ends.empty() ? set.starts[s + 1] : set.real_ends[s];
          tokens[set.sequence[static_cast<size_t>(begin)]] = Ids(set.tokens.begin() + begin, set.tokens.begin() + end);
        }
      }
      return tokens;
    };
    EXPECT_EQ(tokens_of(step), tokens_of(same));
    for (const MicroBatch& batch : step.micro_batches) {
      EXPECT_LE(batch.rows(), kCapacity);
      EXPECT_EQ(batch.rows(), batch.sequences() * batch.sets[0].longest);
      if (options.padding.to == Padding::To::lengths) {
        EXPECT_EQ(batch.sets[0].longest, 16);
      }
    }
  }
}

TEST(MeasurePacking, TellsWhatShareOfTheRowsIsPadding) {
  const std::shared_ptr<const Sequences> sequences = documents();
  LoaderOptions options{.sequences_per_step = 30, .micro_batch_rows = {1000}, .seed = 4, .workers = 0};
  EXPECT_DOUBLE_EQ(measure_packing(*sequences, options).padding_share(), 0);
  options.padding = {.to = Padding::To::lengths, .lengths = {16}};
  const PackingFigures padded = measure_packing(*sequences, options);
  EXPECT_DOUBLE_EQ(padded.computed_rows_per_step, 30 * 16);
  EXPECT_DOUBLE_EQ(padded.rows_per_step, static_cast<double>(sequences->total_rows()));
  EXPECT_DOUBLE_EQ(padded.padding_share(), 1 - static_cast<double>(sequences->total_rows()) / (30 * 16));
}

}  // namespace
}  // namespace brisk
