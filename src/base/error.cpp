#include "base/error.h"

#include <charconv>

#include "base/terminal/terminal.h"
#include "base/text/printable.h"

namespace brisk {

namespace {

// The beginning of a text that is too long for anybody to read, and its size.
std::string cut_at(std::string_view text, size_t most) {
  if (text.size() <= most) return std::string(text);
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xC0) == 0x80) --most;  // between characters
  return fmt::format("{}... ({})", text.substr(0, most), format_bytes(static_cast<double>(text.size())));
}

}  // namespace

std::string message_text(std::string_view text, bool in_quotation_marks) {
  constexpr size_t kMost = 4096;  // as long as a path may be, or advice of many lines
  return in_quotation_marks ? printable(text) : without_controls(cut_at(text, kMost));
}

uint64_t quoted_places(std::string_view format) {
  uint64_t places = 0;
  for (size_t at = 0, place = 0; at < format.size() && place < 64; ++at) {
    if (format[at] != '{' && format[at] != '}') continue;
    if (at + 1 < format.size() && format[at + 1] == format[at]) {
      ++at;  // a brace itself
      continue;
    }
    const size_t end = format.find('}', at);
    if (format[at] == '}' || end == std::string_view::npos) continue;
    const char before = at > 0 ? format[at - 1] : '\0', after = end + 1 < format.size() ? format[end + 1] : '\0';
    size_t argument = place++;
    std::from_chars(format.data() + at + 1, format.data() + end, argument);  // "{0}"
    if (before == after && (before == '\'' || before == '"') && argument < 64) places |= uint64_t{1} << argument;
    at = end;
  }
  return places;
}

UserError::UserError(const std::string& message)
    : std::runtime_error(without_controls(cut_at(message, size_t{64} << 10))) {}

void check_failed(const char* file, int line, const char* condition, const std::string& detail) {
  throw InternalError(
      fmt::format("{}:{}: check failed: {}{}{}", file, line, condition, detail.empty() ? "" : ": ", detail));
}

}  // namespace brisk
