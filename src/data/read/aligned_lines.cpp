#include "data/read/aligned_lines.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "data/read/source_files.h"

namespace brisk {

AlignedLines::AlignedLines(std::vector<std::string> paths) {
  for (std::string& path : paths) {
    std::unique_ptr<ByteReader> reader = open_byte_reader(path);
    files_.push_back({.path = std::move(path), .reader = std::move(reader)});
  }
}

bool AlignedLines::next_of(File& file) const {
  const auto drop_used = [&] {
    file.offset += static_cast<int64_t>(file.used);
    file.buffer.erase(0, file.used);
    file.used = 0;
  };
  size_t end = file.buffer.find('\n', file.used);
  if (end == std::string::npos) drop_used();
  for (size_t searched = 0; end == std::string::npos && !file.ended;) {
    constexpr size_t kReadBytes = size_t{128} << 10;
    searched = file.buffer.size();
    file.ended = fill_buffer(*file.reader, std::max(kReadBytes, 2 * searched), file.buffer);
    end = file.buffer.find('\n', searched);
  }
  if (end == std::string::npos && file.used == file.buffer.size()) return false;
  const size_t begin = file.used;
  std::string_view line = std::string_view(file.buffer).substr(begin, end - begin);
  file.used = end == std::string::npos ? file.buffer.size() : end + 1;
  check_text(file.path, line, file.offset + static_cast<int64_t>(begin), number_);
  if (number_ == 1) line = without_byte_order_mark(line);
  if (line.ends_with('\r')) line.remove_suffix(1);
  file.line = line;
  return true;
}

int64_t AlignedLines::disk_position() const {
  int64_t bytes = 0;
  for (const File& file : files_) bytes += file.reader->disk_position();
  return bytes;
}

bool AlignedLines::next() {
  ++number_;
  std::vector<bool> has_line;
  for (File& file : files_) has_line.push_back(next_of(file));
  if (std::ranges::all_of(has_line, std::identity())) return true;
  if (std::ranges::any_of(has_line, std::identity())) refuse_other_lengths(has_line);
  return false;
}

void AlignedLines::refuse_other_lengths(const std::vector<bool>& has_line) const {
  const File& shorter = files_[std::ranges::find(has_line, false) - has_line.begin()];
  const File& longer = files_[std::ranges::find(has_line, true) - has_line.begin()];
  if (number_ == 1) {
    user_error("{}: the file is empty, but {} has lines: give two files whose lines belong together", shorter.path,
               longer.path);
  }
  user_error(
      "{}: the file ends with line {}, but {} has a line {}: give files with as many lines as each other, of which those of "
      "the same number belong together",
      shorter.path, number_ - 1, longer.path, number_);
}

}  // namespace brisk
