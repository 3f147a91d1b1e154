#include <cstring>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "data/pieces.h"
#include "data/source_files.h"

namespace brisk {

namespace {

using Json = nlohmann::json;

bool has_text(std::string_view text) { return text.find_first_not_of(" \t\r\n\v\f") != std::string_view::npos; }

// What went wrong without the library's own prefix: "[json.exception...] parse error at line 1, column 5: ".
std::string parse_problem(const Json::parse_error& error) {
  std::string_view what = error.what();
  const size_t column = what.find("column");
  const size_t colon = what.find(": ", column == std::string_view::npos ? 0 : column);
  if (colon != std::string_view::npos) what.remove_prefix(colon + 2);
  return std::string(what);
}

// The text of the object in `line`; `where` makes "file: line 3" when there is something to say.
template <typename Where>
std::string text_of_line(std::string_view line, const std::string& text_field, const Where& where) {
  Json object;
  try {
    object = Json::parse(line);
  } catch (const Json::parse_error& error) {
    user_error("{}: column {}: not valid JSON: {}; expected one object a line, such as {{\"{}\": \"...\"}}", where(),
               error.byte, parse_problem(error), text_field);
  }
  if (!object.is_object()) {
    user_error("{}: expected an object, found {} {}; write {{\"{}\": \"...\"}}", where(),
               object.is_array() ? "an" : "a", object.type_name(), text_field);
  }
  const auto found = object.find(text_field);
  if (found == object.end()) {
    std::vector<std::string> fields;
    for (const auto& item : object.items()) fields.push_back(item.key());
    user_error("{}: no field \"{}\"; found: {}; set data.text_field to the one that holds the text", where(),
               text_field, fields.empty() ? "none" : fmt::format("{}", fmt::join(fields, ", ")));
  }
  if (!found->is_string()) {
    user_error("{}: field \"{}\": expected a string, found {} {}", where(), text_field, found->is_array() ? "an" : "a",
               found->type_name());
  }
  return std::move(found->get_ref<std::string&>());
}

}  // namespace

int64_t append_json_documents(const std::string& path, std::string_view bytes, const std::string& text_field,
                              std::deque<std::string>& decoded, std::vector<std::string_view>& documents) {
  struct Part {
    std::vector<std::string> texts;
    int64_t without_text = 0;
  };
  const size_t mark = bytes.starts_with("\xEF\xBB\xBF") ? 3 : 0;
  const std::vector<size_t> ends = cut_at_lines(bytes, size_t{1} << 20);
  std::vector<Part> parts(ends.size());
  run_pieces(static_cast<int64_t>(ends.size()), [&](int64_t piece) {
    const auto index = static_cast<size_t>(piece);
    for (size_t begin = index == 0 ? mark : ends[index - 1]; begin < ends[index];) {
      const size_t newline = bytes.find('\n', begin);
      const size_t end = std::min(newline, ends[index]);
      const std::string_view line = bytes.substr(begin, end - begin);
      if (has_text(line)) {
        std::string text = text_of_line(line, text_field,
                                        [&] { return fmt::format("{}: line {}", path, line_of_byte(bytes, begin)); });
        if (has_text(text)) {
          parts[index].texts.push_back(std::move(text));
        } else {
          ++parts[index].without_text;
        }
      }
      begin = end + 1;
    }
  });
  int64_t without_text = 0;
  for (Part& part : parts) {
    for (std::string& text : part.texts) documents.emplace_back(decoded.emplace_back(std::move(text)));
    without_text += part.without_text;
  }
  return without_text;
}

}  // namespace brisk
