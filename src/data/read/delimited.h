// Parses CSV (RFC 4180) and tables with another separator into records of cells.
//
//   for_each_record("a.csv", "text,label\n\"one, \"\"two\"\"\",1\n", {}, /*first_line=*/1,
//                   [&](std::span<const std::string_view> cells, int64_t line) { ... });
//   // line 1: {text} {label};   line 2: {one, "two"} {1}
//
// A cell that begins with a quote ends with one: what is between may hold separators and line ends, and a quote where
// it is written twice. A quote anywhere else is a character like any other. Records end with LF or CRLF; empty lines
// are skipped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace brisk {

struct DelimitedFormat {
  char separator = ',';
  bool quotes = true;  // otherwise a quote at the beginning of a cell is a character, too, and a line is a record
};

using RecordBody = std::function<void(std::span<const std::string_view> cells, int64_t line)>;

// All records of `text`, the last with or without a line end, in order. The cells live as long as the call of `body`;
// `line` is that of the record's beginning. A quote that is not closed, or closed in the middle of a cell, is a
// UserError with the line. `path` is for messages.
void for_each_record(const std::string& path, std::string_view text, const DelimitedFormat& format, int64_t first_line,
                     const RecordBody& body);

// The bytes of the records of `text` that are whole, line ends included, when more text may come after it.
size_t whole_records(std::string_view text, const DelimitedFormat& format);

// The format of a table by the beginning of its text. CSV: the separator (comma, semicolon, tab, bar) that gives all
// records the same number of cells. TSV: are there quotes? Both kinds of file exist, and a text may begin with a quote
// in either. There are where they are all closed and one holds another, all cells have them, or records have the same
// number of cells only with them.
DelimitedFormat guess_csv_format(std::string_view beginning);
DelimitedFormat guess_tsv_format(std::string_view beginning);

}  // namespace brisk
