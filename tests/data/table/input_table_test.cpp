#include "data/table/input_table.h"

#include <gtest/gtest.h>

#include <random>

#include "base/runtime.h"
#include "support/byte_tokenizer.h"
#include "support/packed_text.h"

namespace brisk {
namespace {

struct Read {
  std::string text, pair, label;
  int64_t line;
};

std::vector<Read> rows_of(const InputTable& table) {
  std::vector<Read> rows;
  TableRowReader reader(table);
  TableRow row;
  while (reader.next(row)) {
    rows.push_back({std::string(row.text), std::string(row.pair), std::string(row.label), row.line});
  }
  return rows;
}

class InputTables : public ::testing::Test {
 protected:
  InputTable table(const std::string& name, const std::string& contents, TableOptions options = {}) const {
    options.paths = {folder_.write(name, contents)};
    return InputTable(options);
  }
  std::string error_of(const std::string& name, const std::string& contents, TableOptions options = {}) const {
    return user_error_of([&] { rows_of(table(name, contents, std::move(options))); });
  }

  ScratchFolder folder_;
};

TEST_F(InputTables, FindsTheColumnsByTheirUsualNames) {
  const InputTable movies = table("a.csv", "id,Review,Sentiment\n1,good film,pos\n2,bad film,neg\n");
  EXPECT_EQ(movies.text_column(), "Review");
  EXPECT_EQ(movies.label_column(), "Sentiment");
  const std::vector<Read> rows = rows_of(movies);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[1].text, "bad film");
  EXPECT_EQ(rows[1].label, "neg");
  EXPECT_EQ(rows[1].line, 3);
  EXPECT_HAS(movies.notes().at(0), "text in column \"Review\", labels in \"Sentiment\" (found by name");
}

TEST_F(InputTables, CallsItsOptionsWhatTheCallerCallsThem) {
  const TableOptions job{.text_field = "txet"}, call{.text_field = "txet", .of_job = false};
  EXPECT_HAS(error_of("a.csv", "text,label\na,1\n", job), "no column \"txet\" (data.text_field)");
  EXPECT_HAS(error_of("a.csv", "text,label\na,1\n", call), "no column \"txet\" (text_field)");
  Runtime command_line({.names_flags = true});
  const RuntimeScope scope(command_line);
  EXPECT_HAS(error_of("a.csv", "text,label\na,1\n", call), "no column \"txet\" (--text-field)");
  const InputTable found = table("a.csv", "text,label\na,1\n", {.of_job = false});
  EXPECT_HAS(found.notes().at(0), "(found by name; --text-field and --label-field choose others)");
}

TEST_F(InputTables, AColumnForEachClassIsRefusedUnlessOneIsNamed) {
  const std::string csv = "text,joy,anger,sad\na b c d,1,0,0\ne f g h,0,1,0\ni j k l,0,1,1\nm n o p,1,0,0\n";
  const std::string error = error_of("a.csv", csv);
  EXPECT_HAS(error, "columns \"joy\", \"anger\", \"sad\" all hold \"0\" and \"1\"");
  EXPECT_HAS(error, "set data.label_field");
  EXPECT_EQ(table("a.csv", csv, {.label_field = "anger"}).label_column(), "anger");
  const InputTable named = table("a.csv", "text,label,joy,sad\na,x,1,0\nb,y,0,1\n");
  EXPECT_EQ(named.label_column(), "label") << "the others are something else";
}

TEST_F(InputTables, OtherColumnsThatMightHoldTheLabelsAreTold) {
  const std::string csv = "text,mood,country\na b c d,good,fr\ne f g h,bad,de\ni j k l,good,it\nm n o p,bad,fr\n";
  const InputTable found = table("a.csv", csv);
  EXPECT_EQ(found.label_column(), "mood");
  EXPECT_HAS(found.notes().at(0), "labels might also be in \"country\"");
}

TEST_F(InputTables, FindsTheColumnsByWhatIsInThem) {
  std::string csv = "key,words of it,kind\n";
  for (int i = 0; i < 30; ++i) csv += fmt::format("{},a text of some length {},{}\n", 1000 + i, i, i % 2 ? "x" : "y");
  const InputTable found = table("a.csv", csv);
  EXPECT_EQ(found.text_column(), "words of it");
  EXPECT_EQ(found.label_column(), "kind");
  EXPECT_HAS(found.notes().at(0), "what is in the first rows");
}

TEST_F(InputTables, TheUserMayNameTheColumns) {
  const std::string csv = "text,title,label,stars\na,b,c,5\n";
  const InputTable named = table("a.csv", csv, {.text_field = "title", .label_field = "stars"});
  EXPECT_EQ(rows_of(named).at(0).text, "b");
  EXPECT_EQ(rows_of(named).at(0).label, "5");
}

TEST_F(InputTables, TwoTextsThatBelongTogetherAreAPair) {
  const InputTable found = table("a.tsv", "premise\thypothesis\tlabel\nit rains\tit is wet\t1\n");
  EXPECT_TRUE(found.has_pairs());
  EXPECT_EQ(rows_of(found).at(0).pair, "it is wet");
  const InputTable named = table("b.csv", "text,other,label\na,b,1\n", {.pair_field = "other"});
  EXPECT_EQ(rows_of(named).at(0).pair, "b");
  const InputTable one =
      table("a.tsv", "premise\thypothesis\tlabel\nit rains\tit is wet\t1\n", {.text_field = "premise"});
  EXPECT_FALSE(one.has_pairs());
}

TEST_F(InputTables, AColumnThatDoesNotExistIsNamedWithThoseThatDoAndTheNearest) {
  const std::string message = error_of("a.csv", "review,stars\na,1\n", {.text_field = "reviw"});
  EXPECT_HAS(message, "no column \"reviw\" (data.text_field)");
  EXPECT_HAS(message, "it has review, stars");
  EXPECT_HAS(message, "did you mean \"review\"?");
}

TEST_F(InputTables, AFileWithoutAHeaderHasNumberedColumns) {
  std::string csv;
  for (int i = 0; i < 20; ++i) csv += fmt::format("{},\"the text, number {}\"\n", i % 2, i);
  const InputTable found = table("a.csv", csv);
  EXPECT_EQ(found.text_column(), "1");
  EXPECT_EQ(found.label_column(), "0");
  EXPECT_EQ(rows_of(found).size(), 20u);
  EXPECT_HAS(found.notes().at(0), "no header row; text in column number 1, labels in number 0");
  EXPECT_EQ(rows_of(table("a.csv", csv, {.text_field = "1", .label_field = "0"})).at(3).label, "1");
  EXPECT_HAS(error_of("a.csv", csv, {.text_field = "2"}), "it has no header row, and columns 0 to 1");
}

TEST_F(InputTables, WordsInAFirstRowThatComeAgainAreNoHeader) {
  std::string tsv;
  for (int i = 0; i < 20; ++i) tsv += fmt::format("{}\tsome words of example {}\n", i % 2 ? "ham" : "spam", i);
  EXPECT_EQ(rows_of(table("a.tsv", tsv)).size(), 20u);
}

TEST_F(InputTables, ARowWithAnotherNumberOfColumnsIsNamedByItsLine) {
  const std::string more = error_of("a.csv", "text,label\n\"two\nlines\",1\none, two,1\n");
  EXPECT_HAS(more, "a.csv: line 4: 3 columns, expected 2");
  EXPECT_HAS(more, "put quotes around");
  EXPECT_HAS(error_of("a.csv", "text,label\na,1\nb\n"), "line 3: 1 columns, expected 2");
}

TEST_F(InputTables, AnEmptyFileAndAHeaderAloneAreErrors) {
  EXPECT_HAS(error_of("a.csv", ""), "a.csv: the file is empty");
  EXPECT_HAS(error_of("a.csv", "\n \n"), "a.csv: the file is empty");
  EXPECT_HAS(error_of("a.csv", "text,label\n"), "a header row (text, label) and nothing below it");
}

TEST_F(InputTables, ReadsBomsCarriageReturnsAndCompressedFiles) {
  const std::string csv = "\xEF\xBB\xBFtext,label\r\n\"a\r\nb\",1\r\n";
  for (const InputTable& read : {table("a.csv", csv), table("b.csv.gz", gzipped(csv))}) {
    EXPECT_EQ(read.text_column(), "text");
    EXPECT_EQ(rows_of(read).at(0).text, "a\nb") << "what a text says does not depend on the system";
    EXPECT_EQ(rows_of(read).at(0).label, "1");
  }
}

TEST_F(InputTables, AQuoteAfterAByteOrderMarkOpensACell) {
  const std::string csv = "\xEF\xBB\xBF\"long\ntext\",label\n\"a\nb\",1\n";
  const InputTable read = table("a.csv", csv);
  EXPECT_EQ(rows_of(read).at(0).text, "a\nb");
  EXPECT_EQ(last_row_end(read.files()[0], csv.substr(0, 9), 0), 0u);
  EXPECT_EQ(last_row_end(read.files()[0], csv.substr(0, 24), 0), 21u);
}

TEST_F(InputTables, TheHeaderMayComeAfterBlankLines) {
  const InputTable read = table("a.csv", "\n\ntext,label\na,1\nb,0\n");
  ASSERT_EQ(rows_of(read).size(), 2u);
  EXPECT_EQ(rows_of(read)[0].line, 4);
  int64_t rows = 0;  // and in a piece of its own
  for_each_row(read.files()[0], "text,label\na,1\n", 2, 3, [&](const TableRow&) { ++rows; });
  EXPECT_EQ(rows, 1);
}

TEST_F(InputTables, ReadsNestedFieldsAndNumbersOfJsonLines) {
  const std::string json =
      "{\"meta\": {\"label\": 3}, \"parts\": [{\"text\": \"a\"}, {\"text\": \"b\"}]}\n\n"
      "{\"meta\": {\"label\": true}, \"parts\": []}\n{\"meta\": {}, \"parts\": null}\n";
  const std::vector<Read> rows =
      rows_of(table("a.jsonl", json, {.text_field = "parts.text", .label_field = "meta.label"}));
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].text, "a\nb");
  EXPECT_EQ(rows[0].label, "3");
  EXPECT_EQ(rows[1].label, "true");
  EXPECT_EQ(rows[1].line, 3);
  EXPECT_EQ(rows[2].label, "");
  EXPECT_HAS(error_of("a.jsonl", "{\"text\": \"a\", \"label\": 1}\n", {.label_field = "lable"}),
             "no column \"lable\" (data.label_field); it has label, text; did you mean \"label\"?");
  EXPECT_HAS(error_of("a.jsonl", "{\"text\": \"a\", \"label\": 1}\n{\"text\": \n"), "line 2");
}

TEST_F(InputTables, LabelsAreNotLookedForWhereTheyAreNotNeeded) {
  const InputTable texts = table("a.csv", "text\nonly texts\nhere\n", {.labelled = false});
  EXPECT_FALSE(texts.has_labels());
  EXPECT_EQ(rows_of(texts).size(), 2u);
  EXPECT_HAS(error_of("a.csv", "text\nonly texts\nhere\n"), "no column with labels was found");
}

TEST_F(InputTables, PlainTextIsATableOfTextsWhereNoLabelsAreNeeded) {
  const std::vector<Read> blocks = rows_of(table("a.txt", "\none\ntwo\n\n\nthree\n", {.labelled = false}));
  ASSERT_EQ(blocks.size(), 2u);
  EXPECT_EQ(blocks[0].text, "one\ntwo");
  EXPECT_EQ(blocks[0].line, 2);
  EXPECT_EQ(blocks[1].text, "three");
  EXPECT_EQ(blocks[1].line, 6);
  EXPECT_EQ(rows_of(table("b.txt", "one\ntwo\n", {.labelled = false})).size(), 2u);
  EXPECT_HAS(error_of("a.txt", "one\ntwo\n"), "plain text has no labels");
}

TEST_F(InputTables, AHeaderMayHaveColumnsWithoutAName) {
  const InputTable spam = table("spam.csv",
                                "v1,v2,,\nham,\"so it is, my friend\",,\nspam,free entry in a competition,,\n"
                                "ham,ok then see you,,\n");
  EXPECT_EQ(spam.text_column(), "v2");
  EXPECT_EQ(spam.label_column(), "v1");
}

TEST_F(InputTables, SeveralFilesHaveTheirColumnsByName) {
  folder_.write("all/a.csv", "text,label\na,1\n");
  folder_.write("all/b.csv", "label,text\n0,b\n");
  const InputTable both({.paths = {folder_ / "all"}});
  EXPECT_EQ(rows_of(both).at(1).text, "b");
  EXPECT_EQ(rows_of(both).at(1).label, "0");
  folder_.write("all/c.csv", "label,body\n0,b\n");
  EXPECT_HAS(user_error_of([&] { InputTable({.paths = {folder_ / "all"}}); }), "c.csv: no column \"text\"");
}

TEST_F(InputTables, WhatIsNoTableIsRefusedWithTheFix) {
  EXPECT_HAS(error_of("a.xlsx", "PK"), "save it as CSV");
  EXPECT_HAS(error_of("a.csv", std::string("text,label\na\0b,1\n", 17)), "a NUL byte");
  EXPECT_HAS(error_of("a.csv", "text,label\ncaf\xE9,1\n"), "not UTF-8");
  EXPECT_HAS(error_of("a.csv", "text,label\ra,1\r"), "lines end with CR alone");
  EXPECT_HAS(error_of("a.csv", "text,label\na,1\n", {.text_field = "text", .label_field = "text"}), "choose two");
}

TEST_F(InputTables, ALongFileIsReadInPiecesWithTheRightLines) {
  std::mt19937 random(3);
  std::string csv = "label,text\n";
  std::vector<std::pair<std::string, int64_t>> expected;
  for (int64_t line = 2; csv.size() < (size_t{2} << 20);) {
    const std::string text = fmt::format("row {}\nwith \"\"quotes\"\" {}", line, std::string(random() % 3000, 'x'));
    expected.emplace_back(fmt::format("row {}\nwith \"quotes\" ", line), line);
    csv += fmt::format("{},\"{}\"\n", line % 3, text);
    line += 2;
  }
  const std::vector<Read> rows = rows_of(table("a.csv", csv));
  ASSERT_EQ(rows.size(), expected.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    ASSERT_TRUE(rows[i].text.starts_with(expected[i].first));
    ASSERT_EQ(rows[i].line, expected[i].second);
  }
}

TEST_F(InputTables, TheContentHashIsOfTheBytesAndTheColumns) {
  const std::string csv = "text,title,label\na,b,1\n";
  const uint64_t hash = table("a.csv", csv).content_hash();
  EXPECT_EQ(table("other.csv", csv).content_hash(), hash);
  EXPECT_NE(table("a.csv", csv, {.text_field = "title"}).content_hash(), hash);
  EXPECT_NE(table("a.csv", csv + "c,d,0\n").content_hash(), hash);
}

TEST(TableWithoutARow, SaysHowFarItWasLookedAt) {
  std::string note;
  const auto error = [&](const std::string& path, const std::string& beginning) {
    return user_error_of([&] { find_columns(path, beginning, false, {}, nullptr, note); });
  };
  EXPECT_EQ(
      error("a.jsonl", "{\"text\": \"" + std::string(1 << 20, 'a')),
      "a.jsonl: no row ends within the first 1.00 MiB (has the file no line ends?); give a file with a row for each "
      "text");
  const std::string quoted = error("a.csv", "\"text\",\"b\"," + std::string(1 << 20, 'a'));
  EXPECT_EQ(quoted.find("a.csv: no row ends within the first 1.00 MiB ("), 0u) << quoted;
}

TEST_F(InputTables, ShowColumnsThatSomebodyElseNamed) {
  const std::string name = "\x1b[2J" + std::string(1000, 'a');
  const std::string error = error_of("a.csv", name + ",b\n1,2\n", {.text_field = "text", .labelled = false});
  EXPECT_EQ(error.find('\x1b'), std::string::npos);
  EXPECT_NE(error.find("it has \\x1b[2Jaaa"), std::string::npos) << error;
  EXPECT_NE(error.find("... (1004 B), b"), std::string::npos) << error;
}

}  // namespace
}  // namespace brisk
