// Reads JSON lines: one object per line, with the text in one of its fields.
//
//   read_json_lines("a.jsonl", bytes, "article.body.text", /*first_line=*/1, [&](std::string_view text) { ... });
//
//   {"article": {"body": {"text": "..."}}}                   "article.body.text"
//   {"pages": [{"text": "one"}, {"text": "two"}]}            "pages.0.text" is "one", "pages.text" is "one\ntwo"
//
// A dot descends into an object; a key that itself contains the dots takes precedence. In a list, a number selects an
// element, anything else is looked up in each element, and the texts are joined by line ends. null is not text.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace brisk {

// Calls `body` with each text that is not blank, in order; returns how many objects had no text. Blank lines are passed
// over. What is no object, has no such field or none of text there is a UserError with the line. `path` is for
// messages, and so is `text_option`, what chooses the field.
int64_t read_json_lines(const std::string& path, std::string_view bytes, const std::string& text_field,
                        int64_t first_line, const std::function<void(std::string_view text)>& body,
                        const std::string& text_option = "data.text_field");

// Several fields of each line: what a table has in its columns. A field that is not there, or null, is an empty cell; a
// number, true or false are cells as they are written.
//
//   read_json_rows("a.jsonl", bytes, {"text", "label"}, 1, [&](std::span<const std::string_view> cells, int64_t line) {
//     ...
//   });
void read_json_rows(const std::string& path, std::string_view bytes, const std::vector<std::string>& fields,
                    int64_t first_line,
                    const std::function<void(std::span<const std::string_view> cells, int64_t line)>& body);

// The names of the fields of the lines of `bytes` that hold text, numbers, true or false, in the order in which they
// come up: "article.body.text" of those inside others.
std::vector<std::string> json_field_names(const std::string& path, std::string_view bytes);

}  // namespace brisk
