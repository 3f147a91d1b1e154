// A checksum of a file that is written incrementally and verified on all cores.
//
//   FileChecksum checksum;
//   checksum.add(bytes);  ...                              // while it is written
//   const uint64_t sum = checksum.sum();
//   if (!has_checksum(path, size, sum, cache)) ...         // of its first `size` bytes, when it is opened
//
// It detects disk errors, not forgery.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/hash.h"

namespace brisk {

inline constexpr size_t kChecksumPiece = size_t{4} << 20;  // so that cores can share the work

inline uint64_t checksum_of_piece(const std::byte* data, size_t size) {
  return hash_bytes({reinterpret_cast<const char*>(data), size});
}

class FileChecksum {
 public:
  void add(std::span<const std::byte> bytes);
  uint64_t sum() const;

 private:
  std::vector<std::byte> piece_;  // what is not in sum_ yet
  uint64_t sum_ = 0;
};

// That a large file has it is kept in `memo_directory` (data/token_store/file_memo.h), where one is given, so that it is not read
// at each start.
bool has_checksum(const std::string& path, int64_t size, uint64_t sum, const std::string& memo_directory);

}  // namespace brisk
