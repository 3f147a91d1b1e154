#include "base/text/printable.h"

#include <fmt/format.h>

#include "base/terminal/terminal.h"
#include "base/text/unicode.h"

namespace brisk {

namespace {

// What a terminal or a browser acts upon instead of showing it: control characters, and those that format text
// (directions, invisible ones). Joiners stay: Persian words and emoji are spelled with them.
bool is_control(uint32_t point) {
  constexpr CategorySet kControls = category_set(GeneralCategory::Cc, GeneralCategory::Cf, GeneralCategory::Cs,
                                                 GeneralCategory::Zl, GeneralCategory::Zp);
  if (point < 0x7F) return point < 0x20;
  constexpr uint32_t kNonJoiner = 0x200C, kJoiner = 0x200D;
  return point != kNonJoiner && point != kJoiner && is_in(point, kControls);
}

std::string escape_of(uint32_t point) {
  switch (point) {
    case '\n': return "\\n";
    case '\t': return "\\t";
    case '\r': return "\\r";
    default: return point < 0x100 ? fmt::format("\\x{:02x}", point) : fmt::format("\\u{{{:x}}}", point);
  }
}

// The character at text[at], as it is shown; moves `at` past it.
std::string next_shown(std::string_view text, size_t& at) {
  const CodePoint point = decode_utf8(text, at);
  const size_t begin = at;
  at += point.length;
  if (point.value == kInvalidCodePoint) return escape_of(static_cast<unsigned char>(text[begin]));
  if (is_control(point.value)) return escape_of(point.value);
  return std::string(text.substr(begin, point.length));
}

// The end of the last whole character: a character of up to four bytes may lack its last ones.
size_t whole_characters(std::string_view text) {
  for (size_t back = 1; back <= 3 && back <= text.size(); ++back) {
    const auto byte = static_cast<unsigned char>(text[text.size() - back]);
    if ((byte & 0xC0) == 0x80) continue;
    const size_t length = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC0 ? 2 : 1;
    return length > back ? text.size() - back : text.size();
  }
  return text.size();
}

}  // namespace

std::string printable(std::string_view text, int64_t columns) {
  constexpr int64_t kNarrow = 20;
  const std::string dots =
      columns < kNarrow ? "..." : fmt::format("... ({})", format_bytes(static_cast<double>(text.size())));
  const int64_t columns_before_dots = columns - std::ssize(dots);
  std::string shown, kept;  // `kept`: what fits before the dots
  int64_t width = 0;
  for (size_t at = 0; at < text.size();) {
    const std::string next = next_shown(text, at);
    width += display_width(next);
    // Marks that take no column are no way around the limit.
    if (width > columns || std::ssize(shown) > 8 * columns) return kept + dots;
    shown += next;
    if (width <= columns_before_dots) kept = shown;
  }
  return shown;
}

std::string in_quotes(std::string_view text, int64_t columns) {
  std::string shown = "\"";
  for (const char letter : printable(text, columns)) {
    if (letter == '"') shown += '\\';
    shown += letter;
  }
  return shown + "\"";
}

std::string without_controls(std::string_view text) {
  std::string shown;
  shown.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const auto byte = static_cast<unsigned char>(text[at]);
    if ((byte >= 0x20 && byte < 0x7F) || byte == '\n' || byte == '\t') {
      shown += text[at++];
    } else {
      shown += next_shown(text, at);
    }
  }
  return shown;
}

std::string ControlFilter::next(std::string_view piece) {
  waiting_ += piece;
  const size_t end = whole_characters(waiting_);
  std::string shown = without_controls(std::string_view(waiting_).substr(0, end));
  waiting_.erase(0, end);
  return shown;
}

std::string ControlFilter::rest() {
  std::string shown = without_controls(waiting_);
  waiting_.clear();
  return shown;
}

}  // namespace brisk
