// The wire format of protocol buffers, as much of it as events take.
//
//   WireMessage value;
//   value.add_text(1, "loss/train");      // field 1: a string
//   value.add_float(2, 5.25f);            // field 2: a float
//   event.add_message(5, value);          // field 5: another message
//
//   for (WireReader reader(bytes); reader.next();) {
//     if (reader.field() == 2) step = static_cast<int64_t>(reader.number());
//   }
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace brisk {

class WireMessage {
 public:
  void add_integer(int field, int64_t value);  // int64, enum
  void add_double(int field, double value);
  void add_float(int field, float value);
  void add_text(int field, std::string_view bytes);  // string, bytes
  void add_message(int field, const WireMessage& message) { add_text(field, message.bytes_); }
  void add_doubles(int field, std::span<const double> values);  // repeated double, packed

  const std::string& bytes() const { return bytes_; }

 private:
  void add_key(int field, int type);
  void add_varint(uint64_t value);

  std::string bytes_;
};

// Walks over the fields of a message, unknown ones included.
class WireReader {
 public:
  explicit WireReader(std::string_view bytes) : rest_(bytes) {}

  bool next();  // false at the end, and where the bytes are no message: whole() tells which
  bool whole() const { return rest_.empty() && !broken_; }

  int field() const { return field_; }
  uint64_t number() const { return number_; }        // of a varint; the bits of a fixed32 or fixed64
  std::string_view bytes() const { return bytes_; }  // of a string or message

 private:
  bool read_varint(uint64_t& value);

  std::string_view rest_, bytes_;
  int field_ = 0;
  uint64_t number_ = 0;
  bool broken_ = false;
};

}  // namespace brisk
