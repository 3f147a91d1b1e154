#include "data/corpus/text_bytes.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/hash.h"

namespace brisk {

namespace {

// Capitals, accents, digits, and blanks in a row: what tokenizers drop that drop anything.
constexpr std::string_view kProbe =
    "The Caf\xC3\xA9, Stra\xC3\x9F"
    "e 12:\n\n\tTwo  SPACES\n";

bool gives_text_back(const Tokenizer& tokenizer) {
  std::vector<TokenId> ids;
  tokenizer.encode(kProbe, ids);
  return tokenizer.decode(ids) == kProbe;
}

class TokenBytes {
 public:
  explicit TokenBytes(const Tokenizer& tokenizer)
      : tokenizer_(tokenizer), bytes_(static_cast<size_t>(tokenizer.vocab_size()), kNotAsked) {
    for (const char* unknown : {"<unk>", "[UNK]"}) {
      if (const auto id = tokenizer.token_id(unknown)) bytes_[static_cast<size_t>(*id)] = kLost;
    }
    for (const auto end : {tokenizer.end_of_document(), tokenizer.start_of_text()}) {
      if (end) bytes_[static_cast<size_t>(*end)] = 0;
    }
  }

  static constexpr int64_t kLost = -1;  // it may stand for any text

  int64_t of(TokenId id) {
    int64_t& bytes = bytes_[static_cast<size_t>(id)];
    if (bytes == kNotAsked) bytes = std::ssize(tokenizer_.piece(id));
    return bytes;
  }
  // The space that some vocabularies write before every text is not the text's.
  int64_t of_first(TokenId id) {
    const int64_t bytes = of(id);
    return bytes > 0 && tokenizer_.piece(id).front() == ' ' ? std::ssize(tokenizer_.decode({&id, 1})) : bytes;
  }

 private:
  static constexpr int64_t kNotAsked = -2;
  const Tokenizer& tokenizer_;
  std::vector<int64_t> bytes_;
};

}  // namespace

std::optional<int64_t> text_bytes(const TokenStream& stream, const ChunkList& chunks, const Tokenizer& tokenizer) {
  if (chunks.empty() || !gives_text_back(tokenizer)) return std::nullopt;
  TokenBytes bytes(tokenizer);
  const std::optional<TokenId> end =
      tokenizer.end_of_document() ? tokenizer.end_of_document() : tokenizer.start_of_text();
  int64_t sum = 0;
  std::vector<TokenId> tokens;
  for (const Chunk& chunk : chunks) {
    tokens.resize(static_cast<size_t>(chunk.length) + 1);
    stream.copy(chunk.begin, chunk.length + 1, tokens.data());
    for (size_t i = 1; i < tokens.size(); ++i) {
      const int64_t of_token = tokens[i - 1] == end ? bytes.of_first(tokens[i]) : bytes.of(tokens[i]);
      if (of_token == TokenBytes::kLost) return std::nullopt;
      sum += of_token;
    }
  }
  return sum > 0 ? std::optional(sum) : std::nullopt;
}

uint64_t text_fingerprint(const TokenStream& stream, const ChunkList& chunks, const Tokenizer& tokenizer) {
  uint64_t sum = 0;
  int64_t documents = 0;
  // Chunks and documents follow each other in the order of the stream.
  const auto* chunk = chunks.begin();
  for (int64_t document = 0; document < stream.documents() && chunk != chunks.end(); ++document) {
    const TokenStream::Rows rows = stream.document_rows(document);
    if (chunk->begin >= rows.end) continue;
    uint64_t hash = stream.document_hash(document);
    if (chunk->begin > rows.begin) {  // the end of it
      hash = hash_mix(hash, hash_mix(static_cast<uint64_t>(chunk->begin - rows.begin), tokenizer.fingerprint()));
    }
    sum += hash_mix(hash, 1);
    ++documents;
    while (chunk != chunks.end() && chunk->begin < rows.end) ++chunk;
  }
  return hash_mix(sum, static_cast<uint64_t>(documents));
}

}  // namespace brisk
