// Folders of drawn text for scripts/demo_images.sh and docs/images.md:
//
//   c++ -O2 -std=c++20 -I tests scripts/make_text_images.cpp tests/support/text_images.cpp -o make_text_images
//   ./make_text_images lines runs/lines 3000
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include "support/text_images.h"

int main(int count, char** words) try {
  const std::string kind = count > 1 ? words[1] : "";
  const auto make = kind == "lines"    ? brisk::test::make_line_folder
                    : kind == "pages"  ? brisk::test::make_page_folder
                    : kind == "digits" ? brisk::test::make_digit_folder
                                       : nullptr;
  if (make == nullptr || count < 4 || std::atoll(words[3]) <= 0) {
    std::fputs("usage: make_text_images lines|pages|digits FOLDER IMAGES [SEED]\n", stderr);
    return 2;
  }
  make(words[2], std::atoll(words[3]), count > 4 ? std::strtoull(words[4], nullptr, 10) : 1);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
