#include "data/content_hash.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "data/file_memo.h"
#include "data/pieces.h"
#include "data/plain_reader.h"
#include "text/hash.h"

namespace brisk {

namespace {

constexpr int64_t kHashPieceBytes = int64_t{1} << 20;

// Each piece on one core, constant memory a core.
uint64_t hash_file(const std::string& path, int64_t size) {
  const int64_t pieces = (size + kHashPieceBytes - 1) / kHashPieceBytes;
  std::vector<uint64_t> hashes(static_cast<size_t>(pieces));
  run_pieces(pieces, [&](int64_t piece) {
    PlainReader file(path);
    file.skip(piece * kHashPieceBytes);
    std::string bytes(static_cast<size_t>(std::min(kHashPieceBytes, size - piece * kHashPieceBytes)), '\0');
    for (size_t filled = 0; filled < bytes.size();) {
      const size_t count = file.read(bytes.data() + filled, bytes.size() - filled);
      if (count == 0) user_error("{}: it became shorter while it was read; is it being written to?", path);
      filled += count;
    }
    hashes[static_cast<size_t>(piece)] = hash_bytes(bytes);
  });
  uint64_t hash = static_cast<uint64_t>(size);
  for (const uint64_t piece : hashes) hash = hash_mix(hash, piece);
  return hash;
}

}  // namespace

uint64_t file_content_hash(const std::string& path, const std::string& memo_directory) {
  if (memo_directory.empty()) return hash_file(path, file_size(path));
  if (const std::optional<uint64_t> known = recall_about(memo_directory, path, "content")) return *known;
  const uint64_t hash = hash_file(path, file_size(path));
  remember_about(memo_directory, path, "content", hash);
  return hash;
}

}  // namespace brisk
