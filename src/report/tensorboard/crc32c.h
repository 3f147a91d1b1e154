// CRC-32C (Castagnoli), the checksum of TensorBoard's record files.
//
//   crc32c("123456789") == 0xE3069283
#pragma once

#include <cstdint>
#include <string_view>

namespace brisk {

uint32_t crc32c(std::string_view bytes);

// As it stands in record files: rotated and offset, so that the checksum of bytes that hold checksums is still a good
// one.
uint32_t masked_crc32c(std::string_view bytes);

}  // namespace brisk
