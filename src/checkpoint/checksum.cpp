#include "checkpoint/checksum.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <vector>

#include "base/files/files.h"
#include "base/hash.h"
#include "base/rounding.h"
#include "base/runtime.h"

namespace brisk {

namespace {

constexpr size_t kLanes = 8;  // the products of one lane wait for each other: with one, a core hashes 4 GB/s
}  // namespace

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

uint64_t checksum_of_blocks(int64_t file_size, const std::vector<uint64_t>& blocks) {
  uint64_t sum = static_cast<uint64_t>(file_size);
  for (const uint64_t block : blocks) sum = hash_mix(sum, block);
  return sum;
}

uint64_t checksum(std::span<const std::byte> bytes) {
  const auto size = static_cast<int64_t>(bytes.size());
  const int64_t blocks = divide_up(size, kChecksumBlock);
  std::vector<uint64_t> sums(static_cast<size_t>(blocks));
  thread_pool().for_range(blocks, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t block = begin; block < end; ++block) {
      const int64_t first = block * kChecksumBlock;
      sums[static_cast<size_t>(block)] = block_checksum(
          bytes.subspan(static_cast<size_t>(first), static_cast<size_t>(std::min(kChecksumBlock, size - first))),
          static_cast<uint64_t>(block));
    }
  });
  return checksum_of_blocks(size, sums);
}

void RunningChecksum::add(std::span<const std::byte> piece) {
  size_ += std::ssize(piece);
  constexpr auto kWhole = static_cast<size_t>(kChecksumBlock);
  while (!piece.empty()) {
    if (begun_.empty() && piece.size() >= kWhole) {
      blocks_.push_back(block_checksum(piece.first(kWhole), blocks_.size()));
      piece = piece.subspan(kWhole);
      continue;
    }
    const size_t taken = std::min(piece.size(), kWhole - begun_.size());
    begun_.insert(begun_.end(), piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(taken));
    piece = piece.subspan(taken);
    if (begun_.size() < kWhole) continue;
    blocks_.push_back(block_checksum(begun_, blocks_.size()));
    begun_.clear();
  }
}

uint64_t RunningChecksum::value() const {
  std::vector<uint64_t> blocks = blocks_;
  if (!begun_.empty()) blocks.push_back(block_checksum(begun_, blocks.size()));
  return checksum_of_blocks(size_, blocks);
}

std::string checksum_of_file(const std::string& path) {
  const MappedFile file(path);
  file.advise_sequential();
  return checksum_text(checksum(file.bytes()));
}

std::string checksum_text(uint64_t sum) { return fmt::format("{:016x}", sum); }

}  // namespace brisk
