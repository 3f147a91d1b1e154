#include "data/token_store/token_file.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/files/files.h"
#include "base/machine/machine.h"
#include "base/rounding.h"
#include "data/token_store/file_checksum.h"
#include "data/token_store/token_file_layout.h"

namespace brisk {

namespace {

// Empty if `footer` describes a file of this size.
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
    problem = "it is not a token file";
  } else if (preface.version != kTokenFileVersion || (preface.token_bytes != 2 && preface.token_bytes != 4)) {
    problem = "it is of another version";
  } else if (footer.checksum != checksum_of(footer)) {
    problem = "it is cut short or damaged";
  } else if (footer.key != key || footer.vocab_size != vocab_size) {
    problem = "it holds other data than its name says";
  } else if (problem = check_layout(preface, footer, file.size());
             problem.empty() && !has_checksum(path, payload_size, footer.payload_checksum, memo_directory)) {
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
