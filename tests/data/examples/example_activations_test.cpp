#include "data/examples/example_activations.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>

#include "data/examples/example_sequences.h"
#include "support/byte_tokenizer.h"
#include "support/framed_tokenizer.h"
#include "support/scratch_folder.h"

namespace brisk {
namespace {

class ExampleActivationsFile : public testing::Test {
 protected:
  // Three examples of 2, 0 and 1 rows of one float.
  std::shared_ptr<const ExampleActivations> rows(uint64_t key = 7, std::vector<float> values = {1, 2, 3}) {
    const std::vector<int64_t> counts = {2, 0, static_cast<int64_t>(values.size()) - 2};
    return open_or_make_example_activations(
        folder_.path(), "rows", key,
        {.examples = 3, .row_bytes = 4, .rows_of = [&](int64_t i) { return counts[static_cast<size_t>(i)]; }},
        [&](ExampleActivationsWriter& writer) {
          ++made_;
          writer.append(std::as_bytes(std::span(values)));
        });
  }
  static std::vector<float> floats(std::span<const std::byte> bytes) {
    std::vector<float> values(bytes.size() / 4);
    if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }

  test::ScratchFolder folder_;
  int made_ = 0;
};

TEST_F(ExampleActivationsFile, HasTheRowsOfEachExample) {
  const auto made = rows();
  EXPECT_FALSE(made->reused());
  EXPECT_EQ(floats(made->of(0)), (std::vector<float>{1, 2}));
  EXPECT_EQ(floats(made->of(1)), (std::vector<float>{}));
  EXPECT_EQ(floats(made->of(2)), (std::vector<float>{3}));
}

TEST_F(ExampleActivationsFile, IsMadeOnceForAKey) {
  rows();
  EXPECT_TRUE(rows()->reused());
  EXPECT_EQ(made_, 1);
  EXPECT_FALSE(rows(8)->reused());
  EXPECT_EQ(made_, 2);
}

TEST_F(ExampleActivationsFile, IsMadeAgainWhereItWasCutShortOrIsOfAnotherShape) {
  const std::string path = rows()->path();
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 4);
  EXPECT_EQ(floats(rows()->of(2)), (std::vector<float>{3}));
  EXPECT_EQ(made_, 2);
  EXPECT_EQ(floats(rows(7, {1, 2, 3, 4})->of(2)), (std::vector<float>{3, 4}));
  EXPECT_EQ(made_, 3);
}

TEST_F(ExampleActivationsFile, IsMadeAgainWhereAnyByteOfItChanged) {
  const std::string path = rows()->path(), whole = test::contents_of(path);
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 4);
    write_file_atomically(path, damaged);
    made_ = 0;
    const auto again = rows();
    EXPECT_FALSE(again->reused()) << at;
    EXPECT_EQ(made_, 1) << at;
    EXPECT_EQ(floats(again->of(2)), (std::vector<float>{3})) << at;
  }
  EXPECT_EQ(test::contents_of(path), whole);
}

TEST_F(ExampleActivationsFile, LeavesNothingWhereMakingItFailed) {
  const ExampleActivationsShape shape{.examples = 1, .row_bytes = 4, .rows_of = [](int64_t) { return 1; }};
  EXPECT_THROW(
      open_or_make_example_activations(folder_.path(), "rows", 1, shape,
                                       [](ExampleActivationsWriter&) { throw std::runtime_error("the model failed"); }),
      std::runtime_error);
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

class ExampleSequencesAhead : public ExampleActivationsFile {
 protected:
  // Sequences over rows 2, 0 of a table of three texts of different lengths.
  std::shared_ptr<ExampleSequences> sequences() {
    TableOptions options;
    options.paths = {folder_.write("a.csv", "text,label\nabc,pos\nd,neg\nef,pos\n")};
    const auto data = open_examples(InputTable(options), tokenizer_, folder_ / "cache");
    const ExampleSet all(data, tokenizer_, training_labels(*data));
    ChunkListBuilder chosen(data->cache_directory());
    for (const size_t row : {2u, 0u}) chosen.add(all.rows()[row]);
    return std::make_shared<ExampleSequences>(all.subset(std::move(chosen).finish()), 100);
  }
  std::shared_ptr<const ExampleActivations> made(const std::string& kind, const std::vector<int64_t>& counts,
                                                 int64_t cols, const std::vector<float>& values) {
    return open_or_make_example_activations(
        folder_.path(), kind, 1,
        {.examples = std::ssize(counts),
         .row_bytes = 4 * cols,
         .rows_of = [&](int64_t i) { return counts[static_cast<size_t>(i)]; }},
        [&](ExampleActivationsWriter& w) { w.append(std::as_bytes(std::span(values))); });
  }

  FramedTokenizer tokenizer_;
};

TEST_F(ExampleSequencesAhead, CarryTheSharesThatATeacherGivesTheirRows) {
  const auto examples = sequences();
  examples->learn_from(made("logits", {1, 1, 1}, 2, {0, 4, 9, 9, 2, 0}), 2.0);
  MicroBatch batch;
  batch.clear();
  examples->append(0, 0, 0, batch);  // row 2
  examples->append(1, 0, 1, batch);  // row 0
  ASSERT_EQ(batch.sets[1].soft_targets.size(), 4u);
  EXPECT_FLOAT_EQ(batch.sets[1].soft_targets[0], static_cast<float>(1 / (1 + std::exp(-1.0))));
  EXPECT_FLOAT_EQ(batch.sets[1].soft_targets[1], static_cast<float>(1 / (1 + std::exp(1.0))));
  EXPECT_FLOAT_EQ(batch.sets[1].soft_targets[3], static_cast<float>(1 / (1 + std::exp(-2.0))));
  batch.clear();
  EXPECT_TRUE(batch.sets[1].soft_targets.empty());
}

TEST_F(ExampleSequencesAhead, CarryWhatWasComputedOfTheirRows) {
  const auto examples = sequences();
  // Texts of 5, 3 and 4 rows, frames included.
  examples->read_inputs(made("rows", {5, 3, 4}, 1, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}), false);
  MicroBatch batch;
  batch.clear();
  examples->append(0, 0, 0, batch);
  examples->append(1, 0, 1, batch);
  EXPECT_EQ(floats(batch.sets[0].inputs), (std::vector<float>{9, 10, 11, 12, 1, 2, 3, 4, 5}));
  EXPECT_EQ(batch.rows(), 9);
  batch.clear();
  EXPECT_TRUE(batch.sets[0].inputs.empty());
}

TEST_F(ExampleSequencesAhead, CarryItForThePickedRowsAlone) {
  const auto examples = sequences();
  examples->read_inputs(made("rows", {1, 1, 1}, 1, {1, 2, 3}), true);
  MicroBatch batch;
  batch.clear();
  examples->append(0, 0, 0, batch);
  EXPECT_EQ(floats(batch.sets[1].inputs), (std::vector<float>{3}));
  EXPECT_TRUE(batch.sets[0].inputs.empty());
}

TEST_F(ExampleSequencesAhead, TheWholeOfAPartIsEveryRowInOrder) {
  const ExampleSet whole = sequences()->examples().whole();
  ASSERT_EQ(whole.count(), 3);
  EXPECT_EQ(whole.length(0, 100), 5);
  EXPECT_EQ(whole.row_of(2), 2);
}

}  // namespace
}  // namespace brisk
