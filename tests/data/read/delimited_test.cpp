#include "data/read/delimited.h"

#include <gtest/gtest.h>

#include <random>

#include "support/byte_tokenizer.h"

namespace brisk {
namespace {

using Cells = std::vector<std::string>;

struct Records {
  std::vector<Cells> cells;
  std::vector<int64_t> lines;
};

Records records_of(const std::string& text, const DelimitedFormat& format = {}, int64_t first_line = 1) {
  Records records;
  for_each_record("a.csv", text, format, first_line, [&](std::span<const std::string_view> cells, int64_t line) {
    records.cells.emplace_back(cells.begin(), cells.end());
    records.lines.push_back(line);
  });
  return records;
}

TEST(Delimited, CellsAreBetweenSeparatorsAndRecordsBetweenLineEnds) {
  EXPECT_EQ(records_of("a,b\nc,d\n").cells, (std::vector<Cells>{{"a", "b"}, {"c", "d"}}));
  EXPECT_EQ(records_of("a,b\r\nc,d\r\n").cells, (std::vector<Cells>{{"a", "b"}, {"c", "d"}}));
  EXPECT_EQ(records_of("a,b\nc,d").cells, (std::vector<Cells>{{"a", "b"}, {"c", "d"}}));
}

TEST(Delimited, EmptyCellsAreCells) {
  EXPECT_EQ(records_of(",a,\n,,\n").cells, (std::vector<Cells>{{"", "a", ""}, {"", "", ""}}));
  EXPECT_EQ(records_of("a,").cells, (std::vector<Cells>{{"a", ""}}));
  EXPECT_EQ(records_of("a,\r\n").cells, (std::vector<Cells>{{"a", ""}}));
}

TEST(Delimited, QuotesHoldSeparatorsLineEndsAndQuotes) {
  EXPECT_EQ(records_of("\"a,b\",\"say \"\"hi\"\"\"\n\"two\nlines\",\"\"\n").cells,
            (std::vector<Cells>{{"a,b", "say \"hi\""}, {"two\nlines", ""}}));
  EXPECT_EQ(records_of("\"\"\"\",x\r\n").cells, (std::vector<Cells>{{"\"", "x"}}));
  EXPECT_EQ(records_of("\"a\r\nb\",x\r\n").cells, (std::vector<Cells>{{"a\r\nb", "x"}}));
}

TEST(Delimited, AQuoteInsideAnUnquotedCellIsACharacter) {
  EXPECT_EQ(records_of("5\" disk,it's \"so\"\n").cells, (std::vector<Cells>{{"5\" disk", "it's \"so\""}}));
}

TEST(Delimited, WithoutQuotesALineIsARecord) {
  EXPECT_EQ(records_of("\"a\t1\nb\"\t2\n", {'\t', false}).cells, (std::vector<Cells>{{"\"a", "1"}, {"b\"", "2"}}));
}

TEST(Delimited, LinesAreThoseOfTheFileWhateverIsInQuotes) {
  EXPECT_EQ(records_of("a,b\n\"1\n2\n3\",c\n\nd,e\n", {}, 10).lines, (std::vector<int64_t>{10, 11, 15}));
}

TEST(Delimited, BlankLinesArePassedOverButAnEmptyQuotedCellIsNot) {
  EXPECT_EQ(records_of("a\n\n  \n\"\"\nb\n").cells, (std::vector<Cells>{{"a"}, {""}, {"b"}}));
}

TEST(Delimited, AQuoteThatIsNeverClosedIsNamedByTheLineWhereItOpens) {
  const std::string message = user_error_of([] { records_of("a,b\nc,\"d\ne,f\ng,h\n"); });
  EXPECT_HAS(message, "a.csv: line 2: a quoted cell begins here and is never closed");
}

TEST(Delimited, TextAfterAClosingQuoteIsAnError) {
  const std::string message = user_error_of([] { records_of("a,b\n\"he said \"hi\" to me\",1\n"); });
  EXPECT_HAS(message, "a.csv: line 2:");
  EXPECT_HAS(message, "'h' follows");
  EXPECT_HAS(message, "written twice");
}

TEST(Delimited, WholeRecordsEndWhereTheLastRecordEnds) {
  EXPECT_EQ(whole_records("a,b\nc,d\ne", {}), 8u);
  EXPECT_EQ(whole_records("a,\"b\nc\nd", {}), 0u);
  EXPECT_EQ(whole_records("a,b\nc,\"d\n", {}), 4u);
  EXPECT_EQ(whole_records("a,\"b\"", {}), 0u);  // another quote may follow
  EXPECT_EQ(whole_records("a,\"b\"\"\n\"\nx", {}), 9u);
}

TEST(Delimited, FindsTheSeparatorOfACsvFile) {
  EXPECT_EQ(guess_csv_format("text,label\n\"a;b\",1\n").separator, ',');
  EXPECT_EQ(guess_csv_format("text;label\na, b;1\nc;2\n").separator, ';');
  EXPECT_EQ(guess_csv_format("text\tlabel\na, b\t1\n").separator, '\t');
  EXPECT_EQ(guess_csv_format("text|label\na, b|1\n").separator, '|');
  EXPECT_EQ(guess_csv_format("text\njust one column\n").separator, ',');
}

TEST(Delimited, ATsvFileHasQuotesOnlyWhereTheyAreNeededAndClosed) {
  EXPECT_FALSE(guess_tsv_format("text\tlabel\n\"Hello\" she said\t1\n").quotes);
  EXPECT_FALSE(guess_tsv_format("text\tlabel\n\"so it begins\t1\nend\"\t0\n").quotes);
  EXPECT_FALSE(guess_tsv_format("text\tlabel\n\"All of it\"\t1\n").quotes);
  EXPECT_TRUE(guess_tsv_format("text\tlabel\n\"two\nlines\"\t1\n").quotes);
  EXPECT_TRUE(guess_tsv_format("text\tlabel\n\"say \"\"hi\"\"\"\t1\n").quotes);
  EXPECT_TRUE(guess_tsv_format("\"text\"\t\"label\"\n\"a\"\t\"1\"\n").quotes);
}

// A writer of its own: quotes where they are needed, and sometimes where they are not.
std::string written(const std::vector<Cells>& rows, char separator, const std::string& line_end, std::mt19937& random) {
  std::string text;
  for (const Cells& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) {
      if (i > 0) text += separator;
      const bool only_cell = row.size() == 1;
      const bool needs = row[i].find_first_of(std::string("\"\r\n") + separator) != std::string::npos || only_cell;
      if (!needs && random() % 4 != 0) {
        text += row[i];
        continue;
      }
      text += '"';
      for (const char c : row[i]) text += c == '"' ? std::string("\"\"") : std::string(1, c);
      text += '"';
    }
    text += line_end;
  }
  return text;
}

std::vector<Cells> random_rows(std::mt19937& random, char separator) {
  const std::string alphabet = std::string("ab \"\n\r,;\t|'\xC3\xA9") + separator;
  std::vector<Cells> rows(1 + random() % 8);
  const size_t columns = 1 + random() % 4;
  for (Cells& row : rows) {
    row.resize(columns);
    for (std::string& cell : row) {
      for (size_t length = random() % 8; length > 0; --length) {
        const char c = alphabet[random() % alphabet.size()];
        cell += c == '\xC3' || c == '\xA9' ? "\xC3\xA9" : std::string(1, c);
      }
    }
  }
  return rows;
}

TEST(Delimited, WhatIsWrittenIsReadBackWholeOrInPieces) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 3000; ++trial) {
    const DelimitedFormat format{",;\t|"[random() % 4], true};
    const std::vector<Cells> rows = random_rows(random, format.separator);
    std::string text = written(rows, format.separator, random() % 2 == 0 ? "\n" : "\r\n", random);
    const bool cut_last_end = random() % 4 == 0 && text.ends_with("\n") && !rows.back().back().empty();
    if (cut_last_end) text.resize(text.size() - (text.ends_with("\r\n") ? 2 : 1));
    ASSERT_EQ(records_of(text, format).cells, rows) << text;

    // As a reader of pieces does: cut anywhere, keep what is not whole for the next piece.
    std::vector<Cells> in_pieces;
    std::vector<int64_t> lines;
    std::string buffer;
    int64_t line = 1;
    const auto take = [&](size_t size) {
      const Records records = records_of(buffer.substr(0, size), format, line);
      in_pieces.insert(in_pieces.end(), records.cells.begin(), records.cells.end());
      lines.insert(lines.end(), records.lines.begin(), records.lines.end());
      line += std::count(buffer.begin(), buffer.begin() + static_cast<std::ptrdiff_t>(size), '\n');
      buffer.erase(0, size);
    };
    for (size_t at = 0; at < text.size();) {
      const size_t step = std::min<size_t>(text.size() - at, 1 + random() % 12);
      buffer += text.substr(at, step);
      at += step;
      take(whole_records(buffer, format));
    }
    take(buffer.size());
    ASSERT_EQ(in_pieces, rows) << text;
    ASSERT_EQ(lines, records_of(text, format).lines) << text;
  }
}

TEST(Delimited, NoBytesMakeItReadPastTheEnd) {
  std::mt19937 random(11);
  const std::string alphabet = "\"\n\r,a";
  for (int trial = 0; trial < 20000; ++trial) {
    std::string text;
    for (size_t length = random() % 12; length > 0; --length) text += alphabet[random() % alphabet.size()];
    EXPECT_LE(whole_records(text, {}), text.size());
    try {
      records_of(text);
    } catch (const UserError&) {
    }
  }
}

}  // namespace
}  // namespace brisk
