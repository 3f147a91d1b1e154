// The format of a token file, and nothing about how tokens come about.
//
//   TokenFileWriter writer(path, key, vocab_size);
//   writer.begin_document(eod);  writer.append(ids);  ...
//   writer.commit(eod, description);
//
//   std::string problem;
//   std::shared_ptr<const TokenStream> stream = open_token_file(path, key, vocab_size, problem);  // null: see problem
//
// Layout, little-endian:   "brisktok" version  |  tokens (2 or 4 bytes each)  |  starts (8 bytes each)  |  description
// |  footer.   The footer comes last, so that the tokens can be written as they are made and a file cut short has
// none. It holds the sizes, the key, a checksum of everything before it and one of itself.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/files.h"
#include "data/token_stream.h"

namespace brisk {

inline constexpr uint32_t kTokenFileVersion = 1;

class TokenFileWriter {
 public:
  TokenFileWriter(const std::string& path, uint64_t key, int64_t vocab_size);

  void begin_document(int32_t end_of_document);
  void append(std::span<const int32_t> tokens);
  void commit(int32_t end_of_document, const std::string& description);  // the file is there, or a UserError

 private:
  void put(const void* data, size_t size);  // through the buffer, so that checksums are of whole pieces
  void flush();

  AtomicFile file_;
  uint64_t key_;
  int64_t vocab_size_;
  int token_bytes_;
  int64_t tokens_ = 0;
  std::vector<int64_t> starts_;
  std::vector<std::byte> buffer_;
  std::vector<uint16_t> narrow_;
  uint64_t checksum_ = 0;
};

// Null where the file is missing, damaged or of another key or version; `problem` says which ("" for missing).
// Checks the whole file on all cores of the team, so that no damaged id ever reaches an embedding.
std::shared_ptr<const TokenStream> open_token_file(const std::string& path, uint64_t key, int64_t vocab_size,
                                                   std::string& problem);

}  // namespace brisk
