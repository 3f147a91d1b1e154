// A text as one line of an output, whose lines are what other programs count.
#pragma once

#include <string>

namespace brisk {

inline std::string on_one_line(std::string text) {
  for (char& c : text) {
    if (c == '\n' || c == '\r' || c == '\t') c = ' ';
  }
  return text;
}

}  // namespace brisk
