#include "data/token_file.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/error.h"
#include "data/pieces.h"
#include "text/hash.h"

namespace brisk {

namespace {

static_assert(std::endian::native == std::endian::little, "token files are little-endian");

constexpr char kMagic[8] = {'b', 'r', 'i', 's', 'k', 't', 'o', 'k'};
constexpr size_t kPieceBytes = size_t{4} << 20;  // checksums are taken of pieces, so that cores can share the work

struct Preface {
  char magic[8];
  uint32_t version;
  uint32_t token_bytes;
};

struct Footer {
  uint64_t key;
  int64_t vocab_size;
  int64_t tokens;
  int64_t documents;
  int64_t starts_offset;
  int64_t description_offset;
  int64_t description_size;
  uint64_t payload_checksum;
  uint64_t checksum;  // of the fields above
};

uint64_t checksum_of(const Footer& footer) {
  return hash_bytes({reinterpret_cast<const char*>(&footer), offsetof(Footer, checksum)}, kTokenFileVersion);
}

uint64_t checksum_of(std::string_view payload) {
  const auto pieces = static_cast<int64_t>((payload.size() + kPieceBytes - 1) / kPieceBytes);
  std::vector<uint64_t> sums(static_cast<size_t>(pieces));
  run_pieces(pieces, [&](int64_t piece) {
    sums[static_cast<size_t>(piece)] =
        hash_bytes(payload.substr(static_cast<size_t>(piece) * kPieceBytes, kPieceBytes));
  });
  uint64_t sum = 0;
  for (const uint64_t piece : sums) sum = hash_mix(sum, piece);
  return sum;
}

// Empty where `footer` describes a file of this size.
std::string check_layout(const Preface& preface, const Footer& footer, int64_t file_size) {
  if (footer.tokens < 1 || footer.documents < 0 || footer.tokens > file_size || footer.documents > file_size) {
    return "its counts make no sense";
  }
  const int64_t tokens_end = static_cast<int64_t>(sizeof(Preface)) + footer.tokens * preface.token_bytes;
  if (footer.starts_offset != (tokens_end + 7) / 8 * 8 ||
      footer.description_offset != footer.starts_offset + (footer.documents + 1) * 8 ||
      footer.description_offset + footer.description_size + static_cast<int64_t>(sizeof(Footer)) != file_size) {
    return "its size does not match its contents";
  }
  return "";
}

}  // namespace

TokenFileWriter::TokenFileWriter(const std::string& path, uint64_t key, int64_t vocab_size)
    : file_(path), key_(key), vocab_size_(vocab_size), token_bytes_(vocab_size <= 65536 ? 2 : 4) {
  buffer_.reserve(kPieceBytes);
  Preface preface{};
  std::memcpy(preface.magic, kMagic, sizeof(kMagic));
  preface.version = kTokenFileVersion;
  preface.token_bytes = static_cast<uint32_t>(token_bytes_);
  put(&preface, sizeof(preface));
}

void TokenFileWriter::put(const void* data, size_t size) {
  const auto* bytes = static_cast<const std::byte*>(data);
  while (size > 0) {
    const size_t count = std::min(size, kPieceBytes - buffer_.size());
    buffer_.insert(buffer_.end(), bytes, bytes + count);
    bytes += count;
    size -= count;
    if (buffer_.size() == kPieceBytes) flush();
  }
}

void TokenFileWriter::flush() {
  if (buffer_.empty()) return;
  checksum_ = hash_mix(checksum_, hash_bytes({reinterpret_cast<const char*>(buffer_.data()), buffer_.size()}));
  file_.write(buffer_.data(), static_cast<int64_t>(buffer_.size()));
  buffer_.clear();
}

void TokenFileWriter::begin_document(int32_t end_of_document) {
  starts_.push_back(tokens_);
  append({&end_of_document, 1});
}

void TokenFileWriter::append(std::span<const int32_t> tokens) {
  for (const int32_t token : tokens) {
    BRISK_CHECK(token >= 0 && token < vocab_size_, "token {} of a vocabulary of {}", token, vocab_size_);
  }
  tokens_ += static_cast<int64_t>(tokens.size());
  if (token_bytes_ == 4) {
    put(tokens.data(), tokens.size_bytes());
    return;
  }
  narrow_.assign(tokens.begin(), tokens.end());
  put(narrow_.data(), narrow_.size() * 2);
}

void TokenFileWriter::commit(int32_t end_of_document, const std::string& description) {
  begin_document(end_of_document);  // the end of the last document; starts_ closes with its place
  Footer footer{};
  footer.key = key_;
  footer.vocab_size = vocab_size_;
  footer.tokens = tokens_;
  footer.documents = static_cast<int64_t>(starts_.size()) - 1;
  const int64_t tokens_end = static_cast<int64_t>(sizeof(Preface)) + tokens_ * token_bytes_;
  footer.starts_offset = (tokens_end + 7) / 8 * 8;
  const std::byte padding[8] = {};
  put(padding, static_cast<size_t>(footer.starts_offset - tokens_end));
  put(starts_.data(), starts_.size() * sizeof(int64_t));
  footer.description_offset = footer.starts_offset + static_cast<int64_t>(starts_.size() * sizeof(int64_t));
  footer.description_size = static_cast<int64_t>(description.size());
  put(description.data(), description.size());
  flush();
  footer.payload_checksum = checksum_;
  footer.checksum = checksum_of(footer);
  file_.write(&footer, sizeof(footer));
  file_.commit();
}

std::shared_ptr<const TokenStream> open_token_file(const std::string& path, uint64_t key, int64_t vocab_size,
                                                   std::string& problem) {
  problem.clear();
  if (!file_exists(path)) return nullptr;
  MappedFile file(path);
  if (file.size() < static_cast<int64_t>(sizeof(Preface) + sizeof(Footer))) {
    problem = "it is cut short";
    return nullptr;
  }
  Preface preface;
  Footer footer;
  std::memcpy(&preface, file.data(), sizeof(preface));
  const int64_t payload_size = file.size() - static_cast<int64_t>(sizeof(footer));
  std::memcpy(&footer, file.data() + payload_size, sizeof(footer));
  if (std::memcmp(preface.magic, kMagic, sizeof(kMagic)) != 0) {
    problem = "it is no token file";
  } else if (preface.version != kTokenFileVersion || (preface.token_bytes != 2 && preface.token_bytes != 4)) {
    problem = "it is of another version";
  } else if (footer.checksum != checksum_of(footer)) {
    problem = "it is cut short or damaged";
  } else if (footer.key != key || footer.vocab_size != vocab_size) {
    problem = "it holds other data than its name says";
  } else if (problem = check_layout(preface, footer, file.size()); problem.empty()) {
    file.advise_sequential();
    if (footer.payload_checksum != checksum_of(file.text().substr(0, static_cast<size_t>(payload_size)))) {
      problem = "it is damaged";
    }
  }
  if (!problem.empty()) return nullptr;
  std::string description(
      file.text().substr(static_cast<size_t>(footer.description_offset), static_cast<size_t>(footer.description_size)));
  return std::make_shared<TokenStream>(std::move(file), static_cast<int64_t>(sizeof(Preface)), footer.tokens,
                                       static_cast<int>(preface.token_bytes), footer.starts_offset, footer.documents,
                                       std::move(description));
}

}  // namespace brisk
