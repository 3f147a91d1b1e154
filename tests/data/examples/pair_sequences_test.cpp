#include "data/examples/pair_sequences.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "data/batch/loader.h"
#include "data/table/input_table.h"
#include "support/scratch_folder.h"
#include "text/tokenizer.h"

namespace brisk {
namespace {

using test::has;
using test::message_of;

class TextPairs : public ::testing::Test {
 protected:
  TextPairs() {
    const std::vector<std::string_view> texts = {"a house the cat", "ein Haus die Katze"};
    tokenizer = train_bpe(texts, {.vocab_size = 260, .kind = BpeKind::text_to_text}).tokenizer;
  }
  ExampleSet open(const std::string& source, const std::string& target) {
    const InputTable table({.paths = {folder.write("a.en", source)},
                            .labelled = false,
                            .translations = true,
                            .target_paths = {folder.write("a.de", target)}});
    return ExampleSet(open_examples(table, *tokenizer, folder.path()));
  }
  std::string refusal(const std::string& source, const std::string& target) {
    return message_of<UserError>([&] { open(source, target); });
  }
  const test::ScratchFolder folder;
  std::unique_ptr<Tokenizer> tokenizer;
};

TEST_F(TextPairs, AreTwoRowSetsWithTheDecodersInputsAndTargets) {
  const PairFrame frame = pair_frame_of(*tokenizer, *tokenizer);
  const PairSequences pairs(open("ab\n", "xyz\n"), frame, {.source = 16, .target = 16});
  ASSERT_EQ(pairs.count(), 1);
  EXPECT_EQ(pairs.rows(0, 0), 3) << "a text and </s>";
  EXPECT_EQ(pairs.rows(0, 1), 4);
  EXPECT_EQ(pairs.all_rows(), 7);
  MicroBatch batch;
  batch.sets.resize(2);
  pairs.append(0, 0, 5, batch);
  const TokenId start = *tokenizer->token_id("<s>"), end = *tokenizer->token_id("</s>");
  const auto letter = [](char c) { return static_cast<TokenId>(4 + c); };  // after four special tokens
  EXPECT_EQ(batch.sets[0].tokens, (std::vector<TokenId>{letter('a'), letter('b'), end}));
  EXPECT_TRUE(batch.sets[0].targets.empty());
  EXPECT_EQ(batch.sets[1].tokens, (std::vector<TokenId>{start, letter('x'), letter('y'), letter('z')}));
  EXPECT_EQ(batch.sets[1].targets, (std::vector<TokenId>{letter('x'), letter('y'), letter('z'), end}));
  EXPECT_EQ(batch.sets[1].position, (std::vector<int32_t>{0, 1, 2, 3}));
  EXPECT_EQ(batch.sets[1].sequence, (std::vector<int32_t>(4, 5)));
  EXPECT_EQ(batch.rows(), 7);
}

// BART reads </s> before a target, and every target begins with <s>.
TEST_F(TextPairs, BeginWithTheTokenThatTheModelReadsFirst) {
  const std::vector<std::string_view> texts = {"ab", "xyz"};
  const auto bart = train_bpe(texts, {.vocab_size = 261, .kind = BpeKind::roberta}).tokenizer;
  const TokenId start = *bart->token_id("<s>"), end = *bart->token_id("</s>");
  EXPECT_EQ(pair_frame_of(*bart, *bart).start, start);
  EXPECT_TRUE(pair_frame_of(*bart, *bart).target_prefix.empty());
  const PairFrame frame = pair_frame_of(*bart, *bart, end);
  EXPECT_EQ(frame.start, end);
  EXPECT_EQ(frame.target_prefix, std::vector<TokenId>{start});
  EXPECT_TRUE(pair_frame_of(*bart, *bart, start).target_prefix.empty());
  EXPECT_EQ(pair_frame_of(*tokenizer, *tokenizer, 1).start, 1) << "T5 begins with its padding";
  EXPECT_TRUE(pair_frame_of(*tokenizer, *tokenizer, 1).target_prefix.empty());
}

TEST_F(TextPairs, ThatAreTooLongAreLeftOutOrCutWithTheirEndToken) {
  const PairFrame frame = pair_frame_of(*tokenizer, *tokenizer);
  const PairLimits limits{.source = 4, .target = 4};
  const ExampleSet all = open("abc\nabcd\nabc\nabcd\n", "xyz\nxyz\nwxyz\nwxyz\n");
  const FittingPairs skipped = fitting_pairs(all, frame, limits, TooLong::skip);
  EXPECT_EQ(skipped.pairs.count(), 1);
  EXPECT_EQ(skipped.too_long, 3);
  EXPECT_EQ(skipped.long_sources, 2);
  EXPECT_EQ(skipped.long_targets, 2);
  EXPECT_EQ(fitting_pairs(all, frame, limits, TooLong::cut).pairs.count(), 4);
  const PairSequences pairs(all, frame, limits);
  MicroBatch batch;
  batch.sets.resize(2);
  pairs.append(3, 0, 0, batch);
  EXPECT_EQ(batch.sets[0].rows(), 4);
  EXPECT_EQ(batch.sets[0].tokens.back(), frame.source_suffix.back());
  EXPECT_EQ(batch.sets[1].targets.back(), frame.end);
  EXPECT_EQ(pairs.tokens(3, 0).size(), 4u) << "whole";
  EXPECT_TRUE(has(message_of<UserError>([&] { check_room_for_pairs(frame, {.source = 1, .target = 4}); }),
                  "training.max_length = 1"));
}

TEST_F(TextPairs, WithAnEmptySideAreSkippedAndCounted) {
  std::string source, target;
  for (int i = 0; i < 30; ++i) {
    source += i == 3 ? "\n" : "text\n";
    target += i == 7 ? "  \n" : "Text\n";
  }
  const ExampleSet pairs = open(source, target);
  EXPECT_EQ(pairs.count(), 28);
  bool told = false;
  for (const std::string& note : pairs.data().notes()) told |= has(note, "2 without text") && has(note, "lines 4, 8");
  EXPECT_TRUE(told);
  EXPECT_TRUE(has(refusal("a\n\n\n", "x\ny\nz\n"), "are the files aligned")) << refusal("a\n\n\n", "x\ny\nz\n");
}

TEST_F(TextPairs, FillTheMicroBatchesOfBothRowSets) {
  std::string source, target;
  for (int i = 0; i < 200; ++i) {
    source += std::string(1 + i % 9, 'a') + "\n";
    target += std::string(1 + (7 * i) % 13, 'x') + "\n";
  }
  const auto pairs = std::make_shared<const PairSequences>(open(source, target), pair_frame_of(*tokenizer, *tokenizer),
                                                           PairLimits{.source = 32, .target = 32});
  Loader loader(pairs, {.sequences_per_step = 200, .micro_batch_rows = {128, 160}, .workers = 0});
  const StepBatch step = loader.next();
  int64_t sequences = 0;
  for (const MicroBatch& batch : step.micro_batches) {
    EXPECT_LE(batch.sets[0].rows(), 128);
    EXPECT_LE(batch.sets[1].rows(), 160);
    EXPECT_EQ(batch.sets[0].sequences(), batch.sets[1].sequences());
    EXPECT_EQ(batch.real_rows(), batch.rows()) << "no padding on either side";
    sequences += batch.sequences();
  }
  EXPECT_EQ(sequences, 200);
  EXPECT_EQ(step.valid_tokens, pairs->total_rows(1)) << "every target row is a target";
}

TEST_F(TextPairs, MayHaveTwoTokenizers) {
  const std::vector<std::string_view> texts = {"Haus Haus Haus Haus"};
  const auto other = train_bpe(texts, {.vocab_size = 263, .kind = BpeKind::text_to_text}).tokenizer;
  const InputTable table({.paths = {folder.write("a.en", "Haus\n")},
                          .labelled = false,
                          .translations = true,
                          .target_paths = {folder.write("a.de", "Haus\n")}});
  const PairSequences pairs(ExampleSet(open_examples(table, {*tokenizer, *other}, folder.path())),
                            pair_frame_of(*tokenizer, *other), {});
  EXPECT_EQ(other->decode(pairs.tokens(0, 1)), "Haus");
  EXPECT_EQ(tokenizer->decode(pairs.tokens(0, 0)), "Haus");
  EXPECT_LT(pairs.tokens(0, 1).size(), pairs.tokens(0, 0).size());
  const auto shared = open_examples(table, *tokenizer, folder.path());
  EXPECT_NE(shared->cache_path(), pairs.pairs().data().cache_path());
}

TEST(TranslationTable, HasItsColumnsFoundByNameOrPlace) {
  const test::ScratchFolder folder;
  const auto columns = [&](const std::string& name, const std::string& content, const std::string& source = "",
                           const std::string& target = "") {
    const InputTable table({.paths = {folder.write(name, content)},
                            .text_field = source,
                            .pair_field = target,
                            .labelled = false,
                            .translations = true});
    TableRowReader rows(table);
    TableRow row;
    EXPECT_TRUE(rows.next(row));
    return std::string(row.text) + "|" + std::string(row.pair);
  };
  EXPECT_EQ(columns("a.tsv", "Go.\tGeh.\nHi.\tHallo!\n"), "Go.|Geh.") << "no header, whatever it looks like";
  EXPECT_EQ(columns("a2.tsv", "\t\nHi.\tHallo!\n"), "|") << "an empty row names nothing";
  EXPECT_EQ(columns("a3.csv", "text,label\nGo.,Geh.\n"), "Go.|Geh.") << "the first two columns, by usual names";
  EXPECT_EQ(columns("a4.csv", "en,de\nGo.,Geh.\n", "en"), "Go.|Geh.") << "one of them is given, the other is left";
  EXPECT_EQ(columns("a5.csv", "en,de\nGo home.,Geh heim.\n"), "Go home.|Geh heim.")
      << "languages name columns of texts";
  EXPECT_EQ(columns("a6.tsv", "id\tde_DE\tzh\n1\tGeh heim.\t回家吧，马上。\n"), "Geh heim.|回家吧，马上。");
  EXPECT_EQ(columns("a7.csv", "to,zu\nam,an\nis,ist\n"), "to|zu") << "words of a dictionary that look like languages";
  EXPECT_EQ(columns("b.csv", "id,target,source\n1,Geh.,Go.\n"), "Go.|Geh.");
  EXPECT_EQ(columns("c.jsonl", "{\"src\": \"Go.\", \"n\": 3, \"tgt\": \"Geh.\"}\n"), "Go.|Geh.");
  EXPECT_EQ(columns("c.jsonl", "{\"translation\": {\"en\": \"Go.\", \"de\": \"Geh.\"}}\n", "translation.de",
                    "translation.en"),
            "Geh.|Go.");
  EXPECT_EQ(columns("d.tsv", "1\tGo.\t2\tGeh.\n2\tHi.\t3\tHallo!\n", "1", "3"), "Go.|Geh.");
  const std::string message = message_of<UserError>([&] { columns("e.tsv", "1\tGo.\t2\tGeh.\n2\tHi.\t3\tHallo!\n"); });
  EXPECT_TRUE(has(message, "set data.source_field and data.target_field")) << message;
}

TEST(TranslationTable, OfAlignedFilesNeedsAPartnerForEachOfThem) {
  const test::ScratchFolder folder;
  const auto open = [&](const std::vector<std::string>& source, const std::vector<std::string>& target) {
    return message_of<UserError>(
        [&] { InputTable({.paths = source, .labelled = false, .translations = true, .target_paths = target}); });
  };
  const std::string a = folder.write("a.en", "a\n"), b = folder.write("b.en", "b\n"), x = folder.write("a.de", "x\n");
  EXPECT_TRUE(has(open({a, b}, {x}), "2 files of source text, but 1 file of target text"));
  EXPECT_TRUE(has(open({a}, {a}), "named as source and as target"));
  EXPECT_TRUE(has(open({folder.write("a.tsv", "a\tx\n")}, {x}), "a table, not a file with a text on each line"));
  EXPECT_TRUE(has(open({a}, {folder / "missing.de"}), "missing.de"));
}

}  // namespace
}  // namespace brisk
