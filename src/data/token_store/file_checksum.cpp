#include "data/token_store/file_checksum.h"

#include <algorithm>

#include "base/rounding.h"
#include "data/read/pieces.h"
#include "data/read/plain_reader.h"
#include "data/token_store/file_memo.h"

namespace brisk {

namespace {

// Read and not mapped, so that checking a file larger than memory leaves none of it in the process.
uint64_t checksum_of_file_part(const std::string& path, int64_t size) {
  constexpr auto kPiece = static_cast<int64_t>(kChecksumPiece);
  const int64_t pieces = divide_up(size, kPiece);
  std::vector<uint64_t> sums(static_cast<size_t>(pieces));
  run_pieces(pieces, [&](int64_t piece) {
    PlainReader file(path);
    file.skip(piece * kPiece);
    std::vector<std::byte> bytes(static_cast<size_t>(std::min(kPiece, size - piece * kPiece)));
    size_t filled = 0;
    for (size_t count = 1; count > 0 && filled < bytes.size(); filled += count) {
      count = file.read(reinterpret_cast<char*>(bytes.data()) + filled, bytes.size() - filled);
    }
    sums[static_cast<size_t>(piece)] = checksum_of_piece(bytes.data(), filled);
  });
  uint64_t sum = 0;
  for (const uint64_t piece : sums) sum = hash_mix(sum, piece);
  return sum;
}

}  // namespace

void FileChecksum::add(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const size_t count = std::min(bytes.size(), kChecksumPiece - piece_.size());
    piece_.insert(piece_.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(count));
    bytes = bytes.subspan(count);
    if (piece_.size() < kChecksumPiece) continue;
    sum_ = hash_mix(sum_, checksum_of_piece(piece_.data(), piece_.size()));
    piece_.clear();
  }
}

uint64_t FileChecksum::sum() const {
  return piece_.empty() ? sum_ : hash_mix(sum_, checksum_of_piece(piece_.data(), piece_.size()));
}

bool has_checksum(const std::string& path, int64_t size, uint64_t sum, const std::string& memo_directory) {
  if (!memo_directory.empty() && recall_about(memo_directory, path, "whole") == sum) return true;
  if (checksum_of_file_part(path, size) != sum) return false;
  if (!memo_directory.empty()) remember_about(memo_directory, path, "whole", sum);
  return true;
}

}  // namespace brisk
