#include "text/sentencepiece_bpe.h"

#include <algorithm>
#include <bit>

#include "base/error.h"

namespace brisk {

namespace {

// A character as llama2.c cuts it: a byte and the continuation bytes that follow, four bytes at most.
size_t character_end(std::string_view text, size_t begin) {
  size_t end = begin + 1;
  while (end < text.size() && end - begin < 4 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) ++end;
  return end;
}

uint64_t fingerprint_of(const SentencePieceVocabulary& vocabulary) {
  uint64_t hash = hash_bytes("SentencePiece BPE, space before the text");
  for (const std::string& piece : vocabulary.pieces) hash = hash_bytes(piece, hash);
  // Adding zero makes -0 and 0 the same, which they are to the merges; JSON does not keep them apart.
  for (const float score : vocabulary.scores) hash = hash_mix(hash, std::bit_cast<uint32_t>(score + 0.0f));
  return hash;
}

}  // namespace

SentencePieceBpe::SentencePieceBpe(SentencePieceVocabulary vocabulary)
    : vocabulary_(std::move(vocabulary)), fingerprint_(fingerprint_of(vocabulary_)) {
  const std::vector<std::string>& pieces = vocabulary_.pieces;
  BRISK_CHECK(vocab_size() >= kFirstPiece && vocabulary_.scores.size() == pieces.size());
  for (TokenId id = kFirstPiece; id < vocab_size(); ++id) by_piece_.push_back(id);
  std::ranges::sort(by_piece_, {}, [&](TokenId id) -> const std::string& { return pieces[id]; });

  // Equal scores share a rank, so that the leftmost pair goes first among them.
  std::vector<float> descending = vocabulary_.scores;
  std::ranges::sort(descending, std::greater<>());
  descending.erase(std::unique(descending.begin(), descending.end()), descending.end());

  // Two tokens join if their bytes together are a token: every way to cut each piece into two gives a merge.
  std::vector<Merge> merges;
  for (TokenId id = kFirstPiece; id < vocab_size(); ++id) {
    const std::string_view whole = pieces[id];
    const auto better = std::ranges::lower_bound(descending, vocabulary_.scores[id], std::greater<>());
    const auto rank = static_cast<uint32_t>(better - descending.begin());
    for (size_t cut = 1; cut < whole.size(); ++cut) {
      const auto left = find(whole.substr(0, cut)), right = find(whole.substr(cut));
      if (left && right) merges.push_back({*left, *right, id, rank});
    }
  }
  merge_table_ = MergeTable(merges);
}

std::optional<TokenId> SentencePieceBpe::find(std::string_view piece) const {
  const auto bytes_of = [&](TokenId id) { return std::string_view(vocabulary_.pieces[id]); };
  const auto found = std::ranges::lower_bound(by_piece_, piece, {}, bytes_of);
  if (found == by_piece_.end() || bytes_of(*found) != piece) return std::nullopt;
  return *found;
}

void SentencePieceBpe::encode(std::string_view text, std::vector<TokenId>& out) const {
  if (text.empty()) return;
  const size_t size_before = out.size();
  const auto append_character = [&](std::string_view character) {
    if (const auto id = find(character)) {
      out.push_back(*id);
    } else {
      for (const char byte : character) out.push_back(kFirstByte + static_cast<unsigned char>(byte));
    }
  };
  append_character(" ");
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = character_end(text, begin);
    append_character(text.substr(begin, end - begin));
    begin = end;
  }
  out.resize(size_before + merge_table_.apply(std::span(out).subspan(size_before)));
}

std::string SentencePieceBpe::decode(std::span<const TokenId> ids) const {
  std::string text;
  bool at_beginning = true;
  for (const TokenId id : ids) {
    const std::string bytes = piece(id);
    const bool has_added_space = at_beginning && bytes.starts_with(' ');
    text.append(bytes, has_added_space ? 1 : 0);
    at_beginning = id == kStart;
  }
  return text;
}

std::string SentencePieceBpe::piece(TokenId id) const {
  if (id < 0 || id >= vocab_size()) {
    user_error("token id {} is not in the vocabulary, whose ids are 0 to {}; use the tokenizer that wrote the ids", id,
               vocab_size() - 1);
  }
  if (id == kStart || id == kEnd) return "";
  if (id >= kFirstByte && id < kFirstPiece) return std::string(1, static_cast<char>(id - kFirstByte));
  return vocabulary_.pieces[id];
}

}  // namespace brisk
