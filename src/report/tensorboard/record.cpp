#include "report/tensorboard/record.h"

#include <cstdint>
#include <cstring>

#include "report/tensorboard/crc32c.h"

namespace brisk {

namespace {

constexpr size_t kHeader = 12, kFooter = 4;

std::string_view bytes_of(const auto& value) { return {reinterpret_cast<const char*>(&value), sizeof(value)}; }

template <typename T>
T read_number(std::string_view bytes) {
  T value = 0;
  std::memcpy(&value, bytes.data(), sizeof(value));
  return value;
}

}  // namespace

std::string framed_record(std::string_view payload) {
  const uint64_t length = payload.size();
  const uint32_t header_sum = masked_crc32c(bytes_of(length)), sum = masked_crc32c(payload);
  std::string framed;
  framed.reserve(kHeader + payload.size() + kFooter);
  framed += bytes_of(length);
  framed += bytes_of(header_sum);
  framed += payload;
  framed += bytes_of(sum);
  return framed;
}

bool RecordReader::next() {
  const std::string_view rest = bytes_.substr(at_);
  if (rest.size() < kHeader + kFooter) return false;
  const auto length = read_number<uint64_t>(rest);
  if (read_number<uint32_t>(rest.substr(8)) != masked_crc32c(rest.substr(0, 8))) return false;
  if (length > rest.size() - kHeader - kFooter) return false;
  record_ = rest.substr(kHeader, length);
  if (read_number<uint32_t>(rest.substr(kHeader + length)) != masked_crc32c(record_)) return false;
  framed_ = rest.substr(0, kHeader + length + kFooter);
  at_ += framed_.size();
  return true;
}

}  // namespace brisk
