// A 64-bit checksum of a file: fast enough to take of every checkpoint, and different when any bit is.
//
//   const std::string sum = checksum_of_file(path);   // "c0ffee..." 16 digits, on all threads of the ThreadPool
//
// Not against forgery: it tells what a disk or a memory chip changed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace brisk {

uint64_t checksum(std::span<const std::byte> bytes);  // the same for any number of threads
std::string checksum_of_file(const std::string& path);
std::string checksum_text(uint64_t sum);  // 16 digits

// The checksum is made of those of the file's blocks, which whoever writes some of them takes: block `number` of bytes
// [number * kChecksumBlock, ...), all but the last of that size.
constexpr int64_t kChecksumBlock = int64_t{1} << 20;
uint64_t block_checksum(std::span<const std::byte> block, uint64_t number);
uint64_t checksum_of_blocks(int64_t file_size, const std::vector<uint64_t>& blocks);

// The same number of bytes that come piece by piece, on one thread that needs no pool: of a file while it is written.
class RunningChecksum {
 public:
  void add(std::span<const std::byte> piece);
  uint64_t value() const;

 private:
  int64_t size_ = 0;
  std::vector<std::byte> begun_;  // of the block that is not complete yet
  std::vector<uint64_t> blocks_;
};

}  // namespace brisk
