// Makes text from an untrusted file fit for a message: control characters and non-ASCII bytes are replaced, and it is
// cut at 120 bytes.
//
//   user_error("{}: '{}' appears twice", path, printable(name));
#pragma once

#include <string>
#include <string_view>

namespace brisk {

inline std::string printable(std::string_view text) {
  constexpr size_t kLongest = 120;
  std::string shown(text.substr(0, kLongest));
  for (char& letter : shown) {
    if (letter < ' ' || letter > '~') letter = '?';
  }
  return text.size() > kLongest ? shown + "..." : shown;
}

}  // namespace brisk
