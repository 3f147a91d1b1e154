#include "data/read/json_lines.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/error.h"
#include "base/parse_json.h"
#include "base/text/printable.h"
#include "data/read/source_files.h"

namespace brisk {

namespace {

using Json = nlohmann::json;

std::string with_article(const Json& value) {
  if (value.is_null()) return "null";
  return fmt::format("{} {}", value.is_array() || value.is_object() ? "an" : "a", value.type_name());
}

std::string keys_of(const Json& object) {
  constexpr size_t kMost = 20;
  std::vector<std::string> keys;
  for (const auto& item : object.items()) {
    if (keys.size() == kMost) {
      keys.push_back(fmt::format("... ({} in all)", object.size()));
      break;
    }
    keys.push_back(printable(item.key(), 60));
  }
  return keys.empty() ? "none" : fmt::format("{}", fmt::join(keys, ", "));
}

// What to do about a field that is not there, or holds something other than text.
enum class Otherwise : uint8_t { kError, kCell };

// One line's text; knows where it is for the messages.
class LineReader {
 public:
  LineReader(const std::string& path, int64_t line, const std::string& text_field,
             Otherwise otherwise = Otherwise::kError, std::string_view text_option = "data.text_field")
      : path_(path), line_(line), field_(text_field), otherwise_(otherwise), text_option_(text_option) {}

  Json object_of(std::string_view line) const {
    JsonProblem problem;
    Json object = parse_json_or_discard<Json>(line, {}, &problem);
    if (object.is_discarded() && problem.byte > 0) {
      user_error("{}: column {}: not valid JSON: {}; expected one object per line, such as {{\"{}\": \"...\"}}",
                 where(), problem.byte, problem.what, field_);
    }
    if (object.is_discarded()) user_error("{}: not JSON that brisk reads: {}", where(), problem.what);
    if (!object.is_object()) {
      user_error("{}: expected an object, found {}; write {{\"{}\": \"...\"}}", where(), with_article(object), field_);
    }
    return object;
  }

  // Moves it out of the object.
  std::string text_of(Json& object) const {
    std::string text;
    append(object, field_, text, 0);
    return text;
  }

 private:
  std::string where() const { return fmt::format("{}: line {}", path_, line_); }

  // `rest` is what remains of the field's name below `value`.
  void append(Json& value, std::string_view rest, std::string& text, int depth) const {
    constexpr int kDeepest = 100;  // lists within lists of no end would end the stack
    if (depth > kDeepest)
      user_error("{}: field \"{}\": lists are nested more than {} levels deep", where(), field_, kDeepest);
    if (value.is_array()) {
      append_array(value, rest, text, depth);
    } else if (rest.empty()) {
      append_leaf(value, text);
    } else if (value.is_object()) {
      append_member(value, rest, text, depth);
    } else if (otherwise_ == Otherwise::kError) {
      user_error("{}: no field \"{}\": {} holds {}, not an object; set {} to the one that holds the text", where(),
                 field_, above(rest), with_article(value), text_option_);
    }
  }

  void append_member(Json& object, std::string_view rest, std::string& text, int depth) const {
    if (const auto whole = object.find(rest); whole != object.end()) return append(*whole, "", text, depth + 1);
    for (size_t dot = rest.find('.'); dot != std::string_view::npos; dot = rest.find('.', dot + 1)) {
      const auto found = object.find(rest.substr(0, dot));
      if (found != object.end()) return append(*found, rest.substr(dot + 1), text, depth + 1);
    }
    if (otherwise_ == Otherwise::kCell) return;
    const std::string place = above(rest);
    user_error("{}: no field \"{}\"; found{}: {}; set {} to the one that holds the text", where(), field_,
               place.empty() ? "" : " in " + place, keys_of(object), text_option_);
  }

  void append_array(Json& array, std::string_view rest, std::string& text, int depth) const {
    const std::string_view first = rest.substr(0, rest.find('.'));
    size_t index = 0;
    const auto [end, problem] = std::from_chars(first.data(), first.data() + first.size(), index);
    if (!first.empty() && problem == std::errc() && end == first.data() + first.size()) {
      if (index >= array.size()) {
        if (otherwise_ == Otherwise::kCell) return;
        user_error("{}: no field \"{}\": {} has {} elements, counted from 0", where(), field_, above(rest),
                   array.size());
      }
      return append(array[index], rest.substr(std::min(rest.size(), first.size() + 1)), text, depth + 1);
    }
    for (Json& element : array) {
      std::string part;
      append(element, rest, part, depth + 1);
      if (!text.empty() && !part.empty()) text += '\n';
      text += part;
    }
  }

  void append_leaf(Json& value, std::string& text) const {
    if (value.is_null()) return;
    if (otherwise_ == Otherwise::kCell && (value.is_number() || value.is_boolean())) {
      text = value.dump();
      return;
    }
    if (!value.is_string()) {
      user_error("{}: field \"{}\": expected a string, found {}", where(), field_, with_article(value));
    }
    text = std::move(value.get_ref<std::string&>());
  }

  // The part of the field's name that led to where `rest` begins: "article.body" of "article.body.text".
  std::string above(std::string_view rest) const {
    const size_t length = field_.size() - std::min(field_.size(), rest.size());
    return length < 2 ? "" : in_quotes(field_.substr(0, rest.empty() ? length : length - 1));
  }

  const std::string& path_;
  int64_t line_;
  const std::string& field_;
  Otherwise otherwise_;
  std::string_view text_option_;
};

// Calls body(line, number) for each line that is not blank.
template <typename Body>
void for_each_line_of_text(std::string_view bytes, int64_t first_line, const Body& body) {
  int64_t number = first_line;
  for (size_t begin = 0; begin < bytes.size(); ++number) {
    const size_t end = std::min(bytes.find('\n', begin), bytes.size());
    const std::string_view line = bytes.substr(begin, end - begin);
    begin = end + 1;
    if (has_text(line)) body(line, number);
  }
}

void collect_names(const Json& object, const std::string& before, std::vector<std::string>& names, int depth) {
  constexpr int kDeepest = 4;
  for (const auto& [key, value] : object.items()) {
    const std::string name = before + key;
    const bool texts = value.is_array() && !value.empty() && value[0].is_string();
    if (value.is_object() && depth < kDeepest) {
      collect_names(value, name + ".", names, depth + 1);
    } else if (value.is_string() || value.is_number() || value.is_boolean() || texts) {
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
  }
}

}  // namespace

int64_t read_json_lines(const std::string& path, std::string_view bytes, const std::string& text_field,
                        int64_t first_line, const std::function<void(std::string_view text)>& body,
                        const std::string& text_option) {
  int64_t without_text = 0;
  for_each_line_of_text(bytes, first_line, [&](std::string_view line, int64_t number) {
    const LineReader reader(path, number, text_field, Otherwise::kError, text_option);
    Json object = reader.object_of(line);
    const std::string text = reader.text_of(object);
    if (has_text(text)) {
      body(text);
    } else {
      ++without_text;
    }
  });
  return without_text;
}

void read_json_rows(const std::string& path, std::string_view bytes, const std::vector<std::string>& fields,
                    int64_t first_line,
                    const std::function<void(std::span<const std::string_view> cells, int64_t line)>& body) {
  std::vector<std::string> texts(fields.size());
  std::vector<std::string_view> cells(fields.size());
  for_each_line_of_text(bytes, first_line, [&](std::string_view line, int64_t number) {
    Json object = LineReader(path, number, fields.at(0)).object_of(line);
    for (size_t i = 0; i < fields.size(); ++i) {
      texts[i] = LineReader(path, number, fields[i], Otherwise::kCell).text_of(object);
      cells[i] = texts[i];
    }
    body(cells, number);
  });
}

std::vector<std::string> json_field_names(const std::string& path, std::string_view bytes) {
  constexpr size_t kMost = 1000;
  const std::string usual = "text";
  std::vector<std::string> names;
  for_each_line_of_text(bytes, 1, [&](std::string_view line, int64_t number) {
    if (names.size() < kMost) collect_names(LineReader(path, number, usual).object_of(line), "", names, 0);
  });
  return names;
}

}  // namespace brisk
