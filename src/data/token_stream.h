// A corpus as one stream of token ids: each document after an end-of-document token, and one more at the very end.
//
//   documents "a b" and "c" give   [eod] a b [eod] c [eod]      document_starts() = 0, 3, 5
//
// Row i of the stream reads token i and predicts token i + 1. So a document of n tokens is n + 1 rows: the first
// predicts its first token from nothing but [eod], the last predicts [eod], that is, the end.
//
//   auto stream = TokenStream::from_documents({{1, 2}, {3}}, /*eod=*/0);
//   stream->rows();                  // 5: every token but the last
//   stream->copy(2, 3, out);         // tokens 2, 3, 4 as int32
//   stream->document_rows(0);        // {0, 3}
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/files.h"

namespace brisk {

class TokenStream {
 public:
  struct Rows {
    int64_t begin, end;
    int64_t size() const { return end - begin; }
  };

  // In memory: for tests and benchmarks.
  static std::shared_ptr<const TokenStream> from_documents(const std::vector<std::vector<int32_t>>& documents,
                                                           int32_t end_of_document);

  // Over a mapped file that holds the tokens, of 2 or 4 bytes each, and the starts of the documents and their end.
  TokenStream(MappedFile file, int64_t tokens_offset, int64_t tokens, int token_bytes, int64_t starts_offset,
              int64_t documents, std::string description);

  int64_t tokens() const { return tokens_; }
  int64_t rows() const { return tokens_ - 1; }
  int64_t documents() const { return static_cast<int64_t>(starts_.size()) - 1; }
  Rows document_rows(int64_t document) const { return {starts_[document], starts_[document + 1]}; }
  std::span<const int64_t> document_starts() const { return starts_; }  // [documents + 1], the last is rows()

  int32_t token(int64_t index) const;
  void copy(int64_t begin, int64_t count, int32_t* out) const;

  // What the user should know about how it was read (Source::notes()), a line each.
  const std::string& description() const { return description_; }

 private:
  TokenStream() = default;

  MappedFile file_;
  std::vector<int32_t> owned_tokens_;
  std::vector<int64_t> owned_starts_;
  const std::byte* data_ = nullptr;
  int token_bytes_ = 4;
  int64_t tokens_ = 0;
  std::span<const int64_t> starts_;
  std::string description_;
};

}  // namespace brisk
