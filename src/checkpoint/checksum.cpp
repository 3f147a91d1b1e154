#include "checkpoint/checksum.h"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <vector>

#include "base/files/files.h"
#include "base/hash.h"
#include "base/rounding.h"
#include "base/runtime.h"

namespace brisk {

namespace {

constexpr int64_t kBlock = int64_t{1} << 20;
constexpr size_t kLanes = 8;  // the products of one lane wait for each other: with one, a core hashes 4 GB/s

uint64_t block_checksum(std::span<const std::byte> bytes, uint64_t number) {
  std::array<uint64_t, kLanes> lanes;
  for (size_t lane = 0; lane < kLanes; ++lane) lanes[lane] = hash_mix(number, lane + 1);
  constexpr size_t kStripe = kLanes * sizeof(uint64_t);
  const size_t whole = bytes.size() / kStripe * kStripe;
  for (size_t at = 0; at < whole; at += kStripe) {
    std::array<uint64_t, kLanes> words;
    std::memcpy(words.data(), bytes.data() + at, kStripe);
    for (size_t lane = 0; lane < kLanes; ++lane) lanes[lane] = hash_mix(lanes[lane], words[lane]);
  }
  uint64_t sum = hash_bytes({reinterpret_cast<const char*>(bytes.data()) + whole, bytes.size() - whole}, number);
  for (const uint64_t lane : lanes) sum = hash_mix(sum, lane);
  return sum;
}

}  // namespace

uint64_t checksum(std::span<const std::byte> bytes) {
  const auto size = static_cast<int64_t>(bytes.size());
  const int64_t blocks = divide_up(size, kBlock);
  std::vector<uint64_t> sums(static_cast<size_t>(blocks));
  thread_pool().for_range(blocks, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t block = begin; block < end; ++block) {
      const int64_t first = block * kBlock;
      sums[static_cast<size_t>(block)] =
          block_checksum(bytes.subspan(static_cast<size_t>(first), static_cast<size_t>(std::min(kBlock, size - first))),
                         static_cast<uint64_t>(block));
    }
  });
  uint64_t sum = static_cast<uint64_t>(size);
  for (const uint64_t block : sums) sum = hash_mix(sum, block);
  return sum;
}

std::string checksum_of_file(const std::string& path) {
  const MappedFile file(path);
  file.advise_sequential();
  return fmt::format("{:016x}", checksum(file.bytes()));
}

}  // namespace brisk
