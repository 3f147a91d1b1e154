// The kinds of files a Source reads, and plain text cut into documents.
//
//   check_extension("a.csv");                                      // UserError with the fix
//   check_text("a.txt", bytes, 0, 1);                              // UserError: binary, or not UTF-8
//   append_text_documents(bytes, DocumentRule::kBlock, documents);
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/read/source.h"

namespace brisk {

std::string lowercase_extension(const std::string& path);  // ".txt", "" if there is none

// .jsonl and .ndjson, and .json where it is compressed: that is how large JSON lines corpora are named.
bool is_json_lines(const std::string& path);

// Is it text by its name? What a folder stands for; ".jsonl.gz" counts, ".tar.gz" does not.
bool is_text_file(const std::string& path);

// UserError for a file whose name says that it holds something other than text (.zip, .csv, .json, ...), with the fix.
void check_extension(const std::string& path);

// UserError if the bytes are binary (NUL) or not UTF-8; names the byte and the line. `offset` and `line` are those
// of the first byte in the file.
void check_text(const std::string& path, std::string_view bytes, int64_t offset, int64_t line);

// A line that ends with CR LF ends with LF: what a text says does not depend on the system it was written on.
void make_line_ends_plain(std::string& text);

// What kAuto goes by.
struct TextShape {
  int64_t lines = 0;   // that are not blank
  int64_t blocks = 0;  // runs of such lines
};
TextShape measure_text_shape(std::string_view text);

// Text with a blank line every so many lines on average is in paragraphs; with fewer, a blank line is a stray one.
inline constexpr int64_t kLinesOfBlock = 100;

bool is_blank(std::string_view line);
bool has_text(std::string_view text);
size_t last_blank_line_end(std::string_view text);  // 0 if there is none
std::string_view without_byte_order_mark(std::string_view text);

// Appends views of the documents of `text`. They begin with the first line that is not blank and end without its line
// end.
void append_text_documents(std::string_view text, DocumentRule rule, std::vector<std::string_view>& documents);

// A document that is longer than a piece of work comes in parts: the first without blank lines before it, the last
// without the blank lines and the line end after it.
std::string_view first_part_of_document(std::string_view text);
std::string_view last_part_of_document(std::string_view text);

}  // namespace brisk
