// Text out of a file that nobody has checked, made fit for a message: no control characters, no bytes that are no
// ASCII, and not too long.
//
//   user_error("{}: it has '{}' twice", path, printable(name));
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
