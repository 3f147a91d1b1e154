#include "cli/prompt_file.h"

#include <array>
#include <cstdio>

#include "base/files/files.h"

namespace brisk {

std::string read_prompt_file(const std::string& path) {
  std::string text;
  if (path == "-") {
    std::array<char, 65536> block;
    for (size_t size = 0; (size = std::fread(block.data(), 1, block.size(), stdin)) > 0;)
      text.append(block.data(), size);
  } else {
    text = read_file(path, file_kind::prompt);
  }
  if (text.ends_with('\n')) text.pop_back();
  if (text.ends_with('\r')) text.pop_back();
  return text;
}

}  // namespace brisk
