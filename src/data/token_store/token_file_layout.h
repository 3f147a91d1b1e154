// The on-disk structures of a token file, shared by its writer and its reader.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/hash.h"
#include "data/token_store/token_file.h"

namespace brisk {

static_assert(std::endian::native == std::endian::little, "token files are little-endian");

constexpr char kTokenFileMagic[8] = {'b', 'r', 'i', 's', 'k', 't', 'o', 'k'};

struct TokenFilePreface {
  char magic[8];
  uint32_t version;
  uint32_t token_bytes;
};

struct TokenFileFooter {
  uint64_t key;
  int64_t vocab_size;
  int64_t tokens;
  int64_t documents;
  int64_t starts_offset;
  int64_t hashes_offset;
  int64_t description_offset;
  int64_t description_size;
  uint64_t payload_checksum;
  uint64_t checksum;  // of the fields above
};

inline uint64_t checksum_of(const TokenFileFooter& footer) {
  return hash_bytes({reinterpret_cast<const char*>(&footer), offsetof(TokenFileFooter, checksum)}, kTokenFileVersion);
}

}  // namespace brisk
