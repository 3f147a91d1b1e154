#include "doctor/show/wrapped.h"

#include "base/terminal/terminal.h"
#include "base/text/printable.h"

namespace brisk {

std::string wrapped(std::string_view first, std::string_view text, int64_t indent) {
  constexpr int64_t kLongest = 4000;
  const std::string shown = printable(text, kLongest), margin(static_cast<size_t>(indent), ' ');
  std::string all, line(first), word;
  bool is_empty = true;  // the line, but for its margin
  const auto end_line = [&] {
    while (line.ends_with(' ')) line.pop_back();
    all += line + "\n";
    line = margin;
    is_empty = true;
  };
  const auto add_word = [&] {
    if (word.empty()) return;
    if (!is_empty && display_width(line) + 1 + display_width(word) > kColumns) end_line();
    if (!is_empty) line += ' ';
    for (size_t at = 0; at < word.size();) {
      size_t next = at + 1;
      while (next < word.size() && (static_cast<unsigned char>(word[next]) & 0xC0) == 0x80) ++next;
      const std::string_view character = std::string_view(word).substr(at, next - at);
      if (display_width(line) + display_width(character) > kColumns) end_line();
      line += character;
      is_empty = false;
      at = next;
    }
    word.clear();
  };
  for (const char letter : shown) {
    if (letter == ' ') {
      add_word();
    } else {
      word += letter;
    }
  }
  add_word();
  end_line();
  return all;
}

}  // namespace brisk
