#include "data/examples/examples.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <map>
#include <set>

#include "base/runtime.h"
#include "data/examples/example_statistics.h"
#include "support/byte_tokenizer.h"
#include "support/framed_tokenizer.h"

namespace brisk {
namespace {

class Examples : public ::testing::Test {
 protected:
  std::shared_ptr<const ExampleData> data(const std::string& name, const std::string& contents,
                                          TableOptions options = {}) const {
    options.paths = {folder_.write(name, contents)};
    return open_examples(InputTable(options), tokenizer_, folder_ / "cache");
  }
  ExampleSet set(const std::string& csv, TableOptions options = {}) const {
    const auto all = data("a.csv", csv, std::move(options));
    return ExampleSet(all, tokenizer_, training_labels(*all));
  }

  ScratchFolder folder_;
  FramedTokenizer tokenizer_;
};

TEST_F(Examples, ARowIsASequenceWithItsSpecialTokensAndItsLabelPicked) {
  const ExampleSet examples = set("text,label\nabc,pos\nde,neg\n");
  ASSERT_EQ(examples.count(), 2);
  EXPECT_EQ(examples.labels().names(), (std::vector<std::string>{"neg", "pos"}));
  EXPECT_EQ(examples.label(0), 1);
  EXPECT_EQ(examples.length(0, 100), 5);
  MicroBatch batch;
  examples.append(0, 100, 7, batch);
  examples.append(1, 100, 3, batch);
  EXPECT_EQ(shown(batch.sets[0].tokens), "<abc><de>");
  EXPECT_EQ(batch.sets[0].starts, (std::vector<int32_t>{0, 5, 9}));
  EXPECT_EQ(batch.sets[0].position, (std::vector<int32_t>{0, 1, 2, 3, 4, 0, 1, 2, 3}));
  EXPECT_EQ(batch.sets[0].sequence, (std::vector<int32_t>{7, 7, 7, 7, 7, 3, 3, 3, 3}));
  EXPECT_EQ(batch.sets[0].targets, std::vector<int32_t>(9, -1));
  EXPECT_EQ(batch.sets[0].types, std::vector<int32_t>(9, 0));
  EXPECT_EQ(batch.sets[0].longest, 5);
  EXPECT_EQ(batch.sets[1].source, (std::vector<int32_t>{0, 5}));
  EXPECT_EQ(batch.sets[1].starts, (std::vector<int32_t>{0, 1, 2}));
  EXPECT_EQ(batch.sets[1].position, (std::vector<int32_t>{0, 0}));
  EXPECT_EQ(batch.sets[1].sequence, (std::vector<int32_t>{7, 3}));
  EXPECT_EQ(batch.sets[1].targets, (std::vector<int32_t>{1, 0}));
  EXPECT_TRUE(batch.sets[1].weights.empty());
  EXPECT_EQ(batch.sets[1].longest, 1);
}

TEST_F(Examples, TextsOfOneTableAreFoundInAnother) {
  const auto train = data("train.csv", "text,label\nabc,pos\nde,neg\n");
  const auto other = data("other.csv", "text,label\nde,pos\nde,neg\nxyz,pos\n");
  EXPECT_EQ(shared_texts(*other, *train), 2);
  EXPECT_EQ(shared_texts(*train, *other), 1);
  EXPECT_EQ(shared_texts(*train, *train), 2);
}

TEST_F(Examples, ALongTextIsCutAtItsEnd) {
  const ExampleSet examples = set("text,label\nabcdef,1\nx,0\n");
  MicroBatch batch;
  EXPECT_EQ(examples.length(0, 5), 5);
  examples.append(0, 5, 0, batch);
  EXPECT_EQ(shown(batch.sets[0].tokens), "<abc>");
}

TEST_F(Examples, APairIsTwoTextsTheSecondOfItsOwnType) {
  const ExampleSet examples = set("text1,text2,label\nabcdef,xy,1\nab,wxyz,0\nabcd,wxyz,0\n");
  ASSERT_TRUE(examples.has_pairs());
  MicroBatch batch;
  examples.append(0, 100, 0, batch);
  EXPECT_EQ(shown(batch.sets[0].tokens), "<abcdef>xy>");
  EXPECT_EQ(batch.sets[0].types, (std::vector<int32_t>{0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1}));
  const auto cut = [&](int64_t index, int64_t max_length) {
    batch.clear();
    examples.append(index, max_length, 0, batch);
    EXPECT_EQ(batch.rows(), examples.length(index, max_length));
    return shown(batch.sets[0].tokens);
  };
  EXPECT_EQ(cut(0, 10), "<abcde>xy>");  // the longer one first
  EXPECT_EQ(cut(0, 7), "<ab>xy>");
  EXPECT_EQ(cut(0, 6), "<ab>x>");
  EXPECT_EQ(cut(1, 7), "<ab>wx>");
  EXPECT_EQ(cut(2, 8), "<ab>wxy>");  // equally long: the odd one is the second's, as in Hugging Face's libraries
}

TEST_F(Examples, ClassWeightsComeWithThePickedRows) {
  ExampleSet examples = set("text,label\na,0\nb,0\nc,0\nd,1\n");
  EXPECT_EQ(examples.class_counts(), (std::vector<int64_t>{3, 1}));
  const std::vector<float> weights = balanced_class_weights(examples.class_counts());
  EXPECT_FLOAT_EQ(weights[0], 4.0f / 6.0f);
  EXPECT_FLOAT_EQ(weights[1], 2.0f);
  examples.set_class_weights(weights);
  MicroBatch batch;
  for (int32_t i = 0; i < 4; ++i) examples.append(i, 10, i, batch);
  EXPECT_EQ(batch.sets[1].weights, (std::vector<float>{weights[0], weights[0], weights[0], weights[1]}));
}

TEST_F(Examples, AWeightOfOneKeepsItsPlaceAmongOthers) {
  ExampleSet examples = set("text,label\na,0\nb,1\nc,0\n");
  examples.set_class_weights({1, 3});
  MicroBatch batch;
  for (int32_t i = 0; i < 3; ++i) examples.append(i, 10, i, batch);
  EXPECT_EQ(batch.sets[1].weights, (std::vector<float>{1, 3, 1}));
}

TEST_F(Examples, TokensAreMadeOnceForTheSameBytesColumnsAndTokenizer) {
  const std::string csv = "text,title,label\na,b,1\nc,d,0\n";
  EXPECT_FALSE(data("a.csv", csv)->reused());
  EXPECT_TRUE(data("a.csv", csv)->reused());
  EXPECT_TRUE(data("b.csv", csv)->reused());
  EXPECT_EQ(data("b.csv", csv)->label_names(), (std::vector<std::string>{"1", "0"}));
  EXPECT_FALSE(data("a.csv", csv, {.text_field = "title"})->reused());
  EXPECT_FALSE(data("a.csv", csv, {.pair_field = "title"})->reused());
  EXPECT_FALSE(data("a.csv", csv + "e,f,1\n")->reused());
  const InputTable table({.paths = {folder_ / "a.csv"}});
  EXPECT_FALSE(open_examples(table, FramedTokenizer(2), folder_ / "cache")->reused());
}

TEST_F(Examples, AnyNumberOfThreadsMakesTheSame) {
  std::string csv = "text,label\n";
  for (int i = 0; i < 40000; ++i) csv += fmt::format("\"text {}\nof some length\",class {}\n", i, i % 700);
  folder_.write("a.csv", csv);
  const int threads = thread_pool().size();
  std::vector<std::string> contents;
  for (const int size : {1, 3}) {
    Runtime::current().set_threads(size);
    const auto made =
        open_examples(InputTable({.paths = {folder_ / "a.csv"}}), tokenizer_, folder_ / std::to_string(size));
    std::ifstream file(made->cache_path(), std::ios::binary);
    contents.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    EXPECT_EQ(made->rows(), 40000);
    EXPECT_EQ(made->label_names().size(), 700u);
    EXPECT_EQ(made->label_of(12345), 12345 % 700);
    EXPECT_EQ(made->missing().count(), 0);
  }
  Runtime::current().set_threads(threads);
  EXPECT_EQ(contents[0], contents[1]);
}

// Stops after so many texts, as a killed process does.
class StoppingTokenizer : public FramedTokenizer {
 public:
  void encode(std::string_view text, std::vector<TokenId>& out) const override {
    if (--left < 0) throw std::runtime_error("killed");
    FramedTokenizer::encode(text, out);
  }
  mutable std::atomic<int64_t> left{INT64_MAX};
};

TEST_F(Examples, WhatAKilledProcessMadeIsGoneOnWith) {
  std::string csv = "text,label\n,no text\n";
  for (int i = 0; i < 7000; ++i) csv += fmt::format("\"text {},{}\",c{}\n", i, std::string(2000, 'x'), i * 7 % 11);
  const InputTable table({.paths = {folder_.write("a.csv", csv)}});
  const StoppingTokenizer tokenizer;
  tokenizer.left = 6500;
  EXPECT_THROW(open_examples(table, tokenizer, folder_ / "cache", {}, 0), std::runtime_error);
  tokenizer.left = 5000;  // not enough to begin anew
  const auto resumed = open_examples(table, tokenizer, folder_ / "cache", {}, 0);
  const auto whole = open_examples(table, tokenizer_, folder_ / "other");
  ASSERT_EQ(resumed->rows(), 7000);
  EXPECT_EQ(resumed->label_names(), whole->label_names());
  EXPECT_EQ(resumed->missing().without_text, 1);
  EXPECT_EQ(resumed->missing().rows, 7001);
  for (int64_t row = 0; row < 7000; row += 97) {
    ASSERT_EQ(resumed->label_of(row), whole->label_of(row));
    ASSERT_EQ(resumed->text_hash_of(row), whole->text_hash_of(row));
  }
}

TEST_F(Examples, RowsWithoutTextOrLabelAreLeftOutAndNamed) {
  std::string csv = "text,label\n,1\na,\n\" \",0\n";
  for (int i = 0; i < 40; ++i) csv += fmt::format("t{},{}\n", i, i % 2);
  const auto all = data("a.csv", csv);
  EXPECT_EQ(all->rows(), 40);
  EXPECT_EQ(all->missing().without_text, 2);
  EXPECT_EQ(all->missing().without_label, 1);
  EXPECT_HAS(all->notes().back(), "skipped: 3 of 43 rows (2 without text, 1 without a label): lines 2, 3, 4");
  EXPECT_HAS(data("a.csv", csv)->notes().back(), "skipped: 3 of 43 rows");
}

TEST_F(Examples, MoreThanOneInTenMissingIsAnError) {
  std::string csv = "text,label\n";
  for (int i = 0; i < 30; ++i) csv += fmt::format("t{},{}\n", i, i % 5 == 0 ? "" : i % 2 ? "a" : "b");
  const std::string message = user_error_of([&] { data("a.csv", csv); });
  EXPECT_HAS(message, "a.csv: 6 of 30 rows (6 without a label): lines 2, 7, 12, 17, 22, 27; more than 10 %");
  EXPECT_HAS(message, "data.label_field");
  for (const auto& entry : std::filesystem::directory_iterator(folder_ / "cache")) {
    ADD_FAILURE() << "left behind: " << entry.path();
  }
}

TEST_F(Examples, OneClassOnlyIsAnError) {
  const std::string message = user_error_of([&] { set("text,label\na,yes\nb,yes\n"); });
  EXPECT_HAS(message, "column \"label\": only one class (\"yes\" in all 2 rows)");
}

TEST_F(Examples, AColumnOfDifferentValuesHoldsNoLabels) {
  std::string csv = "text,label\n";
  for (int i = 0; i < 50; ++i) csv += fmt::format("t{},{}\n", i, i);
  EXPECT_HAS(user_error_of([&] { set(csv); }), "50 different labels in 50 rows");
}

TEST_F(Examples, ALabelThatOnlyValidationHasIsAnError) {
  const ExampleSet train = set("text,label\na,pos\nb,neg\n");
  const auto validation = data("v.csv", "text,label\nc,pos\nd,positiv\ne,neg\n");
  const std::string message = user_error_of([&] { ExampleSet(validation, tokenizer_, train.labels()); });
  EXPECT_HAS(message, "v.csv: column \"label\": a label that the training data does not have: positiv (1 of 3 rows)");
  EXPECT_HAS(message, "training has neg, pos");
}

TEST_F(Examples, NumbersAreTheSameLabelHoweverTheyAreWritten) {
  const ExampleSet train = set("text,label\na,10\nb,9\nc,1.0\n");
  EXPECT_EQ(train.labels().names(), (std::vector<std::string>{"1", "9", "10"}));
  const ExampleSet validation(data("v.csv", "text,label\na,10.0\nb,1\n"), tokenizer_, train.labels());
  EXPECT_EQ(validation.label(0), 2);
  EXPECT_EQ(validation.label(1), 0);
}

TEST_F(Examples, WithoutLabelsAnExampleHasNone) {
  const ExampleSet texts(data("a.csv", "text\nabc\n", {.labelled = false}), tokenizer_);
  EXPECT_EQ(texts.label(0), -1);
  MicroBatch batch;
  texts.append(0, 10, 0, batch);
  EXPECT_EQ(batch.sets[1].targets, (std::vector<int32_t>{-1}));
}

TEST_F(Examples, ALongTextInPiecesLosesNothing) {
  const ExampleSet texts(data("a.csv", "text\nabcdefg\nxy\nabcdef\n", {.labelled = false}), tokenizer_);
  const ExampleSet pieces = texts.in_pieces(5);
  ASSERT_EQ(pieces.count(), 6);
  MicroBatch batch;
  for (int32_t i = 0; i < 6; ++i) {
    const int64_t before = batch.rows();
    pieces.append(i, 5, i, batch);
    EXPECT_EQ(batch.rows() - before, pieces.length(i, 5));
  }
  EXPECT_EQ(shown(batch.sets[0].tokens), "<abc><def><g><xy><abc><def>");
  batch.clear();
  const Masker masker(tokenizer_, {.masked = 1, .replaced = 0});
  pieces.append_masked(0, 5, 0, masker, 0, batch);
  EXPECT_EQ(batch.sets[1].rows(), 1);
  EXPECT_EQ(batch.sets[0].tokens[static_cast<size_t>(batch.sets[1].source[0])], 259);
  EXPECT_EQ(example_statistics(pieces, 5).truncated, 0);
}

TEST_F(Examples, ARowHasOneLabel) {
  EXPECT_HAS(user_error_of([&] { data("a.jsonl", "{\"text\": \"a\", \"label\": [\"x\", \"y\"]}\n"); }),
             "line 1: several labels or lines (\"x\", \"y\") in column \"label\"; a row must have one label");
  EXPECT_HAS(user_error_of([&] { data("a.csv", "text,label\na," + std::string(2000, 'x') + "\nb,1\n"); }),
             "line 2: a label of 2000 bytes");
}

std::map<std::string, int64_t> counts_of(const ExampleSet& examples) {
  std::map<std::string, int64_t> counts;
  const std::vector<int64_t> numbers = examples.class_counts();
  for (size_t i = 0; i < numbers.size(); ++i) counts[examples.labels().name(static_cast<int64_t>(i))] = numbers[i];
  return counts;
}

TEST_F(Examples, TheSplitTakesItsShareOfEveryClass) {
  std::string csv = "text,label\n";
  for (int i = 0; i < 1000; ++i) csv += fmt::format("text {},{}\n", i, i % 10 == 0 ? "rare" : "usual");
  const ExampleSet all = set(csv);
  const ExampleSplit split = split_examples(all, 0.1, 1);
  EXPECT_EQ(counts_of(split.validation), (std::map<std::string, int64_t>{{"rare", 10}, {"usual", 90}}));
  EXPECT_EQ(counts_of(split.train), (std::map<std::string, int64_t>{{"rare", 90}, {"usual", 810}}));
  EXPECT_HAS(split.note, "100 of 1000 examples (10.0 %)");
  std::set<int64_t> rows;
  for (const ExampleSet* part : {&split.train, &split.validation}) {
    for (int64_t i = 0; i < part->count(); ++i) rows.insert(part->row_of(i));
  }
  EXPECT_EQ(rows.size(), 1000u);
  const ExampleSplit again = split_examples(all, 0.1, 1), other = split_examples(all, 0.1, 2);
  EXPECT_EQ(again.validation.rows(), std::vector<Chunk>(split.validation.rows()));
  EXPECT_FALSE(other.validation.rows() == std::vector<Chunk>(split.validation.rows()));
}

TEST_F(Examples, TheSplitKeepsCopiesOfATextTogetherWhateverTheirLabels) {
  std::string csv = "text,label\n";
  for (int i = 0; i < 600; ++i) csv += fmt::format("text {},{}\n", i % 200, (i * 31) % 7);
  const ExampleSplit split = split_examples(set(csv), 0.2, 5);
  std::set<uint64_t> train, validation;
  for (int64_t i = 0; i < split.train.count(); ++i) train.insert(split.train.text_hash(i));
  for (int64_t i = 0; i < split.validation.count(); ++i) validation.insert(split.validation.text_hash(i));
  for (const uint64_t hash : validation) EXPECT_FALSE(train.contains(hash));
  EXPECT_NEAR(static_cast<double>(split.validation.count()), 120, 20);
}

TEST_F(Examples, ThousandsOfSmallClassesShareTheValidationPartAndTrainingKeepsEachOfThem) {
  std::string csv = "text,label\n";
  for (int i = 0; i < 6000; ++i) csv += fmt::format("text {},c{}\n", i, i % 2000);
  const ExampleSplit split = split_examples(set(csv), 0.05, 1);
  EXPECT_EQ(split.validation.count(), 300);
  for (const auto& [name, count] : counts_of(split.train)) EXPECT_GE(count, 2) << name;
}

TEST_F(Examples, AClassOfOneTextIsForTraining) {
  const ExampleSplit split = split_examples(set("text,label\na,x\na,x\nb,y\nc,y\n"), 0.5, 1);
  EXPECT_EQ(counts_of(split.train), (std::map<std::string, int64_t>{{"x", 2}, {"y", 1}}));
  EXPECT_EQ(split_examples(set("text,label\na,x\nb,y\n"), 0.5, 1).validation.count(), 0);
}

TEST_F(Examples, TwoJobsAtOnceMakeTheTokensOnce) {
  std::string csv = "text,label\n";
  for (int i = 0; i < 2000; ++i) csv += fmt::format("text {},{}\n", i, i % 2);
  folder_.write("a.csv", csv);
  const auto open = [&] {  // processes of their own, since a process has one thread pool
    const pid_t child = fork();
    if (child != 0) return child;
    const auto made = open_examples(InputTable({.paths = {folder_ / "a.csv"}}), tokenizer_, folder_ / "shared");
    _exit(made->rows() == 2000 ? 0 : 1);
  };
  Runtime::current().set_threads(1);
  const pid_t one = open(), two = open();
  for (const pid_t child : {one, two}) {
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  int64_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_ / "shared")) files += entry.is_regular_file();
  EXPECT_EQ(files, 1);
}

TEST_F(Examples, StatisticsTellLengthsTruncationCopiesAndBalance) {
  const ExampleSet examples = set("text,label\nabcdefgh,pos\nxy,neg\nxy,pos\nz,pos\n");
  const ExampleStatistics statistics = example_statistics(examples, 6);
  EXPECT_EQ(statistics.tokens, 6 + 4 + 4 + 3);
  EXPECT_EQ(statistics.truncated, 1);
  EXPECT_EQ(statistics.tokens_cut, 4);
  EXPECT_EQ(statistics.copies, 1);
  EXPECT_EQ(statistics.contradictions, 1);
  const std::string text = example_statistics_text(statistics);
  EXPECT_HAS(text, "examples     4 with 21 tokens");
  EXPECT_HAS(text, "1 example (25.0 %) is longer than 6 tokens and truncated, losing 19.0 % of all tokens");
  EXPECT_HAS(text, "1 example repeats an earlier text; 1 text comes with different labels");
  EXPECT_HAS(text, "75.0 %");
  EXPECT_HAS(example_statistics_json_text(statistics), "\"truncated\": 1");
}

}  // namespace
}  // namespace brisk
