#include "data/token_file.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/files.h"
#include "base/machine.h"
#include "base/rounding.h"
#include "data/file_memo.h"
#include "data/pieces.h"
#include "data/plain_reader.h"
#include "data/token_file_layout.h"

namespace brisk {

namespace {

// Read and not mapped, so that checking a file larger than memory leaves none of it in the process.
uint64_t payload_checksum(const std::string& path, int64_t size) {
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

// Empty where `footer` describes a file of this size.
std::string check_layout(const TokenFilePreface& preface, const TokenFileFooter& footer, int64_t file_size) {
  if (footer.tokens < 1 || footer.documents < 0 || footer.tokens > file_size || footer.documents > file_size) {
    return "its counts make no sense";
  }
  const int64_t tokens_end = static_cast<int64_t>(sizeof(TokenFilePreface)) + footer.tokens * preface.token_bytes;
  if (footer.starts_offset != round_up(tokens_end, 8) ||
      footer.hashes_offset != footer.starts_offset + (footer.documents + 1) * 8 ||
      footer.description_offset != footer.hashes_offset + footer.documents * 8 ||
      footer.description_offset + footer.description_size + static_cast<int64_t>(sizeof(footer)) != file_size) {
    return "its size does not match its contents";
  }
  return "";
}

bool is_whole(const std::string& path, const TokenFileFooter& footer, int64_t payload_size,
              const std::string& memo_directory) {
  if (!memo_directory.empty() && recall_about(memo_directory, path, "whole") == footer.payload_checksum) return true;
  if (footer.payload_checksum != payload_checksum(path, payload_size)) return false;
  if (!memo_directory.empty()) remember_about(memo_directory, path, "whole", footer.payload_checksum);
  return true;
}

}  // namespace

std::shared_ptr<const TokenStream> open_token_file(const std::string& path, uint64_t key, int64_t vocab_size,
                                                   std::string& problem, const std::string& memo_directory) {
  problem.clear();
  if (!file_exists(path)) return nullptr;
  MappedFile file(path);
  if (file.size() < static_cast<int64_t>(sizeof(TokenFilePreface) + sizeof(TokenFileFooter))) {
    problem = "it is cut short";
    return nullptr;
  }
  TokenFilePreface preface;
  TokenFileFooter footer;
  std::memcpy(&preface, file.data(), sizeof(preface));
  const int64_t payload_size = file.size() - static_cast<int64_t>(sizeof(footer));
  std::memcpy(&footer, file.data() + payload_size, sizeof(footer));
  if (std::memcmp(preface.magic, kTokenFileMagic, sizeof(kTokenFileMagic)) != 0) {
    problem = "it is no token file";
  } else if (preface.version != kTokenFileVersion || (preface.token_bytes != 2 && preface.token_bytes != 4)) {
    problem = "it is of another version";
  } else if (footer.checksum != checksum_of(footer)) {
    problem = "it is cut short or damaged";
  } else if (footer.key != key || footer.vocab_size != vocab_size) {
    problem = "it holds other data than its name says";
  } else if (problem = check_layout(preface, footer, file.size());
             problem.empty() && !is_whole(path, footer, payload_size, memo_directory)) {
    problem = "it is damaged";
  }
  if (!problem.empty()) return nullptr;
  // Of a file that does not fit into memory, the pages around a sequence are not worth reading.
  if (file.size() > memory_available() / 2) file.advise_random();
  std::string description(
      file.text().substr(static_cast<size_t>(footer.description_offset), static_cast<size_t>(footer.description_size)));
  const TokenStream::Layout layout = {.tokens_offset = static_cast<int64_t>(sizeof(preface)),
                                      .tokens = footer.tokens,
                                      .token_bytes = static_cast<int>(preface.token_bytes),
                                      .starts_offset = footer.starts_offset,
                                      .hashes_offset = footer.hashes_offset,
                                      .documents = footer.documents,
                                      .vocab_size = footer.vocab_size};
  return std::make_shared<TokenStream>(std::move(file), layout, std::move(description), path);
}

}  // namespace brisk
