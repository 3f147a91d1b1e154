#include "report/tensorboard/crc32c.h"

#include <array>

namespace brisk {

namespace {

constexpr std::array<uint32_t, 256> make_table() {
  constexpr uint32_t kPolynomial = 0x82F63B78;  // bits reversed
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? kPolynomial : 0);
    table[byte] = value;
  }
  return table;
}

constexpr std::array<uint32_t, 256> kTable = make_table();

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  uint32_t value = 0xFFFFFFFF;
  for (const char byte : bytes) value = (value >> 8) ^ kTable[(value ^ static_cast<unsigned char>(byte)) & 0xFF];
  return ~value;
}

uint32_t masked_crc32c(std::string_view bytes) {
  const uint32_t value = crc32c(bytes);
  return ((value >> 15) | (value << 17)) + 0xA282EAD8;
}

}  // namespace brisk
