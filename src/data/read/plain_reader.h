// A file or a pipe read in order: alone, or as what a compressed file is unpacked from.
//
//   PlainReader file("a.txt");
//   while (size_t count = file.read(buffer, sizeof(buffer))) ...
#pragma once

#include <string>
#include <string_view>

#include "data/read/byte_reader.h"

namespace brisk {

class PlainReader : public ByteReader {
 public:
  explicit PlainReader(std::string path);
  ~PlainReader() override;
  PlainReader(const PlainReader&) = delete;
  PlainReader& operator=(const PlainReader&) = delete;

  size_t read(char* out, size_t size) override;
  void skip(int64_t bytes) override;
  int64_t disk_position() const override { return position_; }

  const std::string& path() const { return path_; }

 private:
  std::string path_;
  int file_descriptor_ = -1;
  bool is_pipe_ = false;  // that the process was started with (base/files/files.h)
  int64_t position_ = 0;
};

// The compressed bytes at hand, filled again when they are used up.
class PackedInput {
 public:
  explicit PackedInput(const std::string& path) : file_(path), buffer_(size_t{1} << 18, '\0') {}

  std::string_view bytes() const { return std::string_view(buffer_).substr(begin_, end_ - begin_); }
  void use(size_t count) { begin_ += count; }
  // More bytes behind those at hand (which must be used up); false at the end of the file.
  bool refill() {
    begin_ = 0;
    end_ = file_.read(buffer_.data(), buffer_.size());
    return end_ > 0;
  }
  // UserError where the file unpacks to more than any text does: `text_bytes` so far.
  void check_expansion(int64_t text_bytes) const;
  int64_t used() const { return file_.disk_position() - static_cast<int64_t>(end_ - begin_); }  // of the file
  const std::string& path() const { return file_.path(); }

 private:
  PlainReader file_;
  std::string buffer_;
  size_t begin_ = 0, end_ = 0;
};

}  // namespace brisk
