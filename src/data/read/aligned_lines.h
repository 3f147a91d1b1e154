// Text files that belong together line by line: hypotheses and references, a text and its translation. Read in constant
// memory, but for the longest line; plain or compressed files, and pipes that the process was started with.
//
//   AlignedLines lines({"test.de", "reference.de"});
//   while (lines.next()) use(lines.text(0), lines.text(1));     // line lines.number() of each
//
// Lines end with LF or CRLF; the last one may end with the file. An empty line is a line. A file that ends before the
// others is a UserError that names the line, and so is what is not UTF-8 (source_files.h).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/read/byte_reader.h"

namespace brisk {

class AlignedLines {
 public:
  explicit AlignedLines(std::vector<std::string> paths);

  bool next();                                                            // false at the end of all of them
  int64_t number() const { return number_; }                              // of the line, from 1
  std::string_view text(size_t file) const { return files_[file].line; }  // until next()

  int64_t disk_position() const;  // bytes of the files themselves that were read, for progress

 private:
  struct File {
    std::string path;
    std::unique_ptr<ByteReader> reader;
    std::string buffer = {};
    std::string_view line = {};  // in the buffer
    size_t used = 0;             // of the buffer: what follows is not given out yet
    int64_t offset = 0;          // of the buffer in the text
    bool ended = false;          // nothing can be read any more
  };
  bool next_of(File& file) const;
  [[noreturn]] void refuse_other_lengths(const std::vector<bool>& has_line) const;

  std::vector<File> files_;
  int64_t number_ = 0;
};

}  // namespace brisk
