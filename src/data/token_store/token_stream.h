// A corpus as one stream of token ids: each document after an end-of-document token, and one more at the very end.
//
//   documents "a b" and "c" give   [eod] a b [eod] c [eod]      document_rows(1) = 3 to 5
//
// Row i of the stream reads token i and predicts token i + 1. So a document of n tokens is n + 1 rows: the first
// predicts its first token from nothing but [eod], the last predicts [eod], that is, the end.
//
//   auto stream = TokenStream::from_documents({{1, 2}, {3}}, /*eod=*/0);
//   stream->rows();                  // 5: every token but the last
//   stream->copy(2, 3, out);         // tokens 2, 3, 4 as int32
//   stream->document_rows(0);        // {0, 3}
//
// Streams of several sources join into one whose tokens and documents follow each other; each part keeps its own last
// end of document, which no row reads:
//
//   auto both = TokenStream::join({books, news});
//   both->part_documents(1);         // how many are of the news
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/files/files.h"

namespace brisk {

class TokenStream {
 public:
  struct Rows {
    int64_t begin, end;
    int64_t size() const { return end - begin; }
  };

  // Where the parts of a mapped token file lie.
  struct Layout {
    int64_t tokens_offset = 0, tokens = 0;
    int token_bytes = 2;        // or 4
    int64_t starts_offset = 0;  // of the documents, and their end: 8 bytes each
    int64_t hashes_offset = 0;  // of the documents' texts, 8 bytes each
    int64_t documents = 0;
    int64_t vocab_size = 0;
  };

  // In memory: for tests and benchmarks. The hash of a document is that of its ids.
  static std::shared_ptr<const TokenStream> from_documents(const std::vector<std::vector<int32_t>>& documents,
                                                           int32_t end_of_document);

  TokenStream(MappedFile file, const Layout& layout, std::string description, std::string path);

  static std::shared_ptr<const TokenStream> join(const std::vector<std::shared_ptr<const TokenStream>>& streams);

  int64_t tokens() const { return tokens_; }
  int64_t rows() const { return tokens_ - parts(); }
  int64_t documents() const { return documents_; }
  Rows document_rows(int64_t document) const;
  uint64_t document_hash(int64_t document) const;

  int64_t parts() const { return std::ssize(parts_); }
  int64_t part_documents(int64_t part) const { return std::ssize(parts_[static_cast<size_t>(part)].data->hashes); }

  int32_t token(int64_t index) const;
  // A UserError if an id is outside the vocabulary: the file was damaged since it was checked.
  void copy(int64_t begin, int64_t count, int32_t* out) const;

  // What the user should know about how it was read (Source::notes()), a line each.
  const std::string& description() const { return description_; }

 private:
  struct Data {
    MappedFile file;
    std::vector<int32_t> owned_tokens;
    std::vector<int64_t> owned_starts;
    std::vector<uint64_t> owned_hashes;
    std::string path;
    const std::byte* tokens = nullptr;
    int64_t count = 0;
    int token_bytes = 4;
    int32_t largest_token = INT32_MAX;
    std::span<const int64_t> starts;
    std::span<const uint64_t> hashes;
  };
  struct Part {
    std::shared_ptr<const Data> data;
    int64_t first_token, first_document;
  };

  TokenStream() = default;
  void add(std::shared_ptr<const Data> data);
  const Part& part_of_document(int64_t document) const;
  const Part& part_of_token(int64_t index) const;

  std::vector<Part> parts_;
  int64_t tokens_ = 0, documents_ = 0;
  std::string description_;
};

}  // namespace brisk
