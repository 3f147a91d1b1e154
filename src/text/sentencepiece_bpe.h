// SentencePiece's BPE as llama2.c runs it: no words, merges by the score of the token they make, a space before every
// text, and bytes for the characters that the vocabulary lacks.
//
//   SentencePieceBpe tokenizer({.pieces = pieces, .scores = scores});
//   tokenizer.encode("Once upon", ids);     // " Once upon", in the fewest best-scored pieces
//
// Ids 0, 1, 2 are <unk>, <s>, </s>; 3 to 258 the bytes 0x00 to 0xFF; the pieces of text follow.
#pragma once

#include "text/merges.h"
#include "text/tokenizer.h"

namespace brisk {

struct SentencePieceVocabulary {
  std::vector<std::string> pieces;  // as in the file: bytes are "<0x00>" to "<0xFF>"
  std::vector<float> scores;        // one for each piece
};

class SentencePieceBpe final : public Tokenizer {
 public:
  static constexpr TokenId kUnknown = 0, kStart = 1, kEnd = 2, kFirstByte = 3, kFirstPiece = kFirstByte + 256;

  explicit SentencePieceBpe(SentencePieceVocabulary vocabulary);

  void encode(std::string_view text, std::vector<TokenId>& out) const override;
  std::string decode(std::span<const TokenId> ids) const override;
  std::string piece(TokenId id) const override;
  int64_t vocab_size() const override { return static_cast<int64_t>(vocabulary_.pieces.size()); }
  std::optional<TokenId> end_of_document() const override { return kEnd; }
  std::optional<TokenId> start_of_text() const override { return kStart; }
  uint64_t fingerprint() const override { return fingerprint_; }
  void save(const std::string& path) const override;

  const SentencePieceVocabulary& vocabulary() const { return vocabulary_; }

 private:
  std::optional<TokenId> find(std::string_view piece) const;

  SentencePieceVocabulary vocabulary_;
  std::vector<TokenId> by_piece_;  // the ids from kFirstPiece on, sorted by their bytes
  MergeTable merge_table_;
  uint64_t fingerprint_;
};

}  // namespace brisk
