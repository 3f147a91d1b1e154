// Two aligned files as one text: a text on each line of the first, its translation on the same line of the second.
//
//   AlignedReader reader("a.en", "a.de");           // plain or compressed (.gz, .zst)
//   reader.read(buffer, size);                      // "a house\0ein Haus\nthe cat\0die Katze\n"
//
// Each line is that of the first file, kBetweenTexts and that of the second. UserError as of AlignedLines.
#pragma once

#include <string>

#include "data/read/aligned_lines.h"
#include "data/read/byte_reader.h"

namespace brisk {

constexpr char kBetweenTexts = '\0';  // no text has it

class AlignedReader final : public ByteReader {
 public:
  AlignedReader(const std::string& source, const std::string& target) : lines_({source, target}) {}

  size_t read(char* out, size_t size) override;
  int64_t disk_position() const override { return lines_.disk_position(); }  // of both files

 private:
  AlignedLines lines_;
  std::string merged_;
  size_t at_ = 0;  // in it
  bool ended_ = false;
};

}  // namespace brisk
