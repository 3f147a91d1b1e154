// Byte-level BPE: GPT-2's tokenizer and ours. Text is split into words (words.h), a word into its bytes, and merges
// join neighbours within a word.
//
//   ByteBpe tokenizer({.pieces = pieces, .merges = merges, .end_of_document = 50256});
#pragma once

#include <array>

#include "text/merges.h"
#include "text/tokenizer.h"

namespace brisk {

struct ByteBpeVocabulary {
  std::vector<std::string> pieces;  // the bytes of each token; all 256 single bytes are among them, none occurs twice
  std::vector<Merge> merges;        // merges[i].rank == i; pieces[left] + pieces[right] == pieces[result]
  std::optional<TokenId> end_of_document;
};

class ByteBpe final : public Tokenizer {
 public:
  explicit ByteBpe(ByteBpeVocabulary vocabulary);

  void encode(std::string_view text, std::vector<TokenId>& out) const override;
  std::string decode(std::span<const TokenId> ids) const override;
  std::string piece(TokenId id) const override;
  int64_t vocab_size() const override { return static_cast<int64_t>(vocabulary_.pieces.size()); }
  std::optional<TokenId> end_of_document() const override { return vocabulary_.end_of_document; }
  std::optional<TokenId> start_of_text() const override { return std::nullopt; }
  uint64_t fingerprint() const override { return fingerprint_; }
  void save(const std::string& path) const override;

  const ByteBpeVocabulary& vocabulary() const { return vocabulary_; }

 private:
  const std::string& piece_at(TokenId id) const;
  void encode_word(std::string_view word, std::vector<TokenId>& out) const;

  ByteBpeVocabulary vocabulary_;
  MergeTable merge_table_;
  std::array<TokenId, 256> byte_ids_;
  uint64_t fingerprint_;
  uint32_t serial_;  // of this object, for the caches of words that threads keep
};

}  // namespace brisk
