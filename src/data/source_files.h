// The pieces Source is made of: checking a file's bytes, cutting plain text into documents, decoding JSON lines.
//
//   check_text("a.txt", bytes);                                    // UserError: binary, or not UTF-8
//   append_text_documents(bytes, DocumentRule::kBlock, documents);
//   append_json_documents("a.jsonl", bytes, "text", decoded, documents);
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "data/source.h"

namespace brisk {

std::string lowercase_extension(const std::string& path);  // ".txt", "" where there is none

bool is_json_lines(const std::string& path);

// UserError for a file whose name says that it holds something other than text (.gz, .csv, .json, ...), with the fix.
void check_extension(const std::string& path);

// UserError where the bytes are binary (NUL) or not UTF-8; names the byte and the line. Uses Team::instance().
void check_text(const std::string& path, std::string_view bytes);

// What kAuto goes by.
struct TextShape {
  int64_t lines = 0;   // that are not blank
  int64_t blocks = 0;  // runs of such lines
};
TextShape measure_text_shape(std::string_view text);

// Appends views of the documents of `text`. They begin with the first line that is not blank and end without its line
// end; a byte order mark is left out.
void append_text_documents(std::string_view text, DocumentRule rule, std::vector<std::string_view>& documents);

// Appends the texts of a file of JSON objects, a line each; `decoded` holds them. Returns how many had no text.
int64_t append_json_documents(const std::string& path, std::string_view bytes, const std::string& text_field,
                              std::deque<std::string>& decoded, std::vector<std::string_view>& documents);

int64_t line_of_byte(std::string_view bytes, size_t offset);  // from 1

// [0, bytes.size()) cut into pieces of about `size` bytes, each ending with a line end: their ends.
std::vector<size_t> cut_at_lines(std::string_view bytes, size_t size);

}  // namespace brisk
