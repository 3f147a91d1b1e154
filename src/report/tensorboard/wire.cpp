#include "report/tensorboard/wire.h"

#include <bit>
#include <cstring>

namespace brisk {

namespace {

constexpr int kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5;

template <typename T>
void append_little_endian(T value, std::string& out) {
  static_assert(std::endian::native == std::endian::little);
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  out.append(bytes, sizeof(T));
}

}  // namespace

void WireMessage::add_varint(uint64_t value) {
  for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(0x80 | (value & 0x7F));
  bytes_ += static_cast<char>(value);
}

void WireMessage::add_key(int field, int type) { add_varint(static_cast<uint64_t>(field) << 3 | uint64_t(type)); }

void WireMessage::add_integer(int field, int64_t value) {
  add_key(field, kVarint);
  add_varint(static_cast<uint64_t>(value));
}

void WireMessage::add_double(int field, double value) {
  add_key(field, kFixed64);
  append_little_endian(value, bytes_);
}

void WireMessage::add_float(int field, float value) {
  add_key(field, kFixed32);
  append_little_endian(value, bytes_);
}

void WireMessage::add_text(int field, std::string_view bytes) {
  add_key(field, kBytes);
  add_varint(bytes.size());
  bytes_ += bytes;
}

void WireMessage::add_doubles(int field, std::span<const double> values) {
  add_key(field, kBytes);
  add_varint(values.size() * sizeof(double));
  for (const double value : values) append_little_endian(value, bytes_);
}

bool WireReader::read_varint(uint64_t& value) {
  value = 0;
  for (int shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(rest_.front());
    rest_.remove_prefix(1);
    value |= static_cast<uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

bool WireReader::next() {
  if (rest_.empty() || broken_) return false;
  broken_ = true;  // until the field has been read
  uint64_t key = 0, size = 0;
  if (!read_varint(key)) return false;
  field_ = static_cast<int>(key >> 3);
  bytes_ = {};
  switch (static_cast<int>(key & 7)) {
    case kVarint:
      if (!read_varint(number_)) return false;
      break;
    case kFixed64: size = 8; break;
    case kFixed32: size = 4; break;
    case kBytes:
      if (!read_varint(size)) return false;
      break;
    default: return false;
  }
  if (size > rest_.size()) return false;
  bytes_ = rest_.substr(0, size);
  rest_.remove_prefix(size);
  if ((key & 7) == kFixed64 || (key & 7) == kFixed32) {
    number_ = 0;
    std::memcpy(&number_, bytes_.data(), size);
  }
  broken_ = false;
  return true;
}

}  // namespace brisk
