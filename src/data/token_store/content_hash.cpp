#include "data/token_store/content_hash.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <vector>

#include "base/error.h"
#include "base/files/files.h"
#include "base/hash.h"
#include "base/rounding.h"
#include "data/read/pieces.h"
#include "data/read/plain_reader.h"
#include "data/token_store/file_memo.h"

namespace brisk {

namespace {

constexpr int64_t kHashPieceBytes = int64_t{1} << 20;

constexpr uint64_t kPlainLineEnds = 0x0A;  // that CR LF is read as LF

struct FileHash {
  uint64_t value;
  bool has_carriage_returns;  // before a line end, or at the end of a piece
};

// Each piece on one core, constant memory a core.
FileHash hash_file(const std::string& path, int64_t size) {
  const int64_t pieces = divide_up(size, kHashPieceBytes);
  std::vector<uint64_t> hashes(static_cast<size_t>(pieces));
  std::atomic<bool> carriage_returns = false;
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
    if (bytes.find("\r\n") != std::string::npos || bytes.ends_with('\r')) carriage_returns = true;
  });
  uint64_t hash = static_cast<uint64_t>(size);
  for (const uint64_t piece : hashes) hash = hash_mix(hash, piece);
  return {hash, carriage_returns};
}

// `make()`, unless the folder knows it already.
template <typename Make>
uint64_t remembered(const std::string& path, const std::string& memo_directory, const char* what, const Make& make) {
  if (memo_directory.empty()) return make();
  if (const std::optional<uint64_t> known = recall_about(memo_directory, path, what)) return *known;
  const uint64_t hash = make();
  remember_about(memo_directory, path, what, hash);
  return hash;
}

}  // namespace

uint64_t file_content_hash(const std::string& path, const std::string& memo_directory) {
  return remembered(path, memo_directory, "content", [&] { return hash_file(path, file_size(path)).value; });
}

uint64_t text_content_hash(const std::string& path, const std::string& memo_directory) {
  if (packing_of(path) != Packing::kNone) return hash_mix(file_content_hash(path, memo_directory), kPlainLineEnds);
  return remembered(path, memo_directory, "text", [&] {
    const FileHash hash = hash_file(path, file_size(path));
    return hash.has_carriage_returns ? hash_mix(hash.value, kPlainLineEnds) : hash.value;
  });
}

}  // namespace brisk
