// The framing of TensorBoard's files (TFRecord): length, its checksum, the bytes, their checksum.
//
//   file.append(framed_record(event.bytes()));
//
//   for (RecordReader reader(bytes); reader.next();) use(reader.record());
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace brisk {

std::string framed_record(std::string_view payload);

// Stops at the first record that is cut short or whose checksum is wrong.
class RecordReader {
 public:
  explicit RecordReader(std::string_view bytes) : bytes_(bytes) {}

  bool next();
  std::string_view record() const { return record_; }  // the payload
  std::string_view framed() const { return framed_; }  // as it lies in the file
  bool at_end() const { return at_ == bytes_.size(); }

 private:
  std::string_view bytes_, record_, framed_;
  size_t at_ = 0;
};

}  // namespace brisk
