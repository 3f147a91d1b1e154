#include "text/models/bpe_model.h"

#include <algorithm>

#include "base/error.h"
#include "base/text/unicode.h"
#include "text/models/word_cache.h"
#include "text/unicode/byte_alphabet.h"

namespace brisk {

namespace {

constexpr const char* kMetaspace = "▁";

}  // namespace

BpeModel::BpeModel(BpeModelParts parts, bool pieces_are_bytes)
    : parts_(std::move(parts)),
      pieces_are_bytes_(pieces_are_bytes),
      merge_table_(parts_.merges),
      serial_(WordCache::next_serial()) {
  fallback_ids_.fill(-1);
  index_symbols();
  find_cut();
}

void BpeModel::index_symbols() {
  const bool looks_up_texts = parts_.ignore_merges || parts_.continuing_subword_prefix || parts_.end_of_word_suffix;
  if (pieces_are_bytes_) symbol_ids_.assign(256, -1);
  texts_.resize(looks_up_texts ? parts_.tokens.size() : 0);
  for (TokenId id = 0; id < static_cast<TokenId>(parts_.tokens.size()); ++id) {
    const std::string& token = parts_.tokens[id];
    if (token.empty()) continue;
    if (parts_.unknown_token == token) unknown_id_ = id;
    if (parts_.byte_fallback && token.size() == 6 && token.starts_with("<0x") && token[5] == '>') {
      for (int byte = 0; byte < 256; ++byte) {
        if (token == fmt::format("<0x{:02X}>", byte)) fallback_ids_[byte] = id;
      }
    }
    // A token with characters outside the alphabet cannot come out of bytes.
    std::optional<std::string> text = pieces_are_bytes_ ? byte_alphabet_decode(token) : std::optional(token);
    if (!text) continue;
    if (pieces_are_bytes_) {
      if (text->size() == 1) symbol_ids_[static_cast<unsigned char>((*text)[0])] = id;
    } else if (const CodePoint first = decode_utf8(*text, 0);
               first.length == text->size() && first.value != kInvalidCodePoint) {
      if (first.value >= symbol_ids_.size()) symbol_ids_.resize(first.value + 1, -1);
      symbol_ids_[first.value] = id;
    }
    if (looks_up_texts) {
      texts_[id] = *std::move(text);
      by_text_.emplace(texts_[id], id);
    }
  }
}

// Vocabularies of SentencePiece have no words: a whole text is one piece. But no token of most of them holds "▁" behind
// something else, and then pieces can be cut before it: shorter pieces merge faster and are found in the cache.
void BpeModel::find_cut() {
  const std::string_view mark = kMetaspace;
  const uint32_t mark_value = decode_utf8(mark, 0).value;
  if (pieces_are_bytes_ || !by_text_.empty() || mark_value >= symbol_ids_.size() || symbol_ids_[mark_value] < 0) return;
  const auto crosses = [&](const Merge& merge) {
    const bool is_odd = merge.left == unknown_id_ || merge.right == unknown_id_;
    return is_odd || (parts_.tokens[merge.right].starts_with(mark) && !parts_.tokens[merge.left].ends_with(mark));
  };
  if (std::ranges::none_of(parts_.merges, crosses)) cut_ = mark;
}

void BpeModel::encode(std::string_view piece, std::vector<TokenId>& out) const {
  if (cut_.empty()) return encode_word(piece, out);
  for (size_t begin = 0; begin < piece.size();) {
    // Over the marks at the beginning, then to the next one.
    size_t end = begin;
    while (piece.substr(end).starts_with(cut_)) end += cut_.size();
    end = std::min(piece.find(cut_, end), piece.size());
    encode_word(piece.substr(begin, end - begin), out);
    begin = end;
  }
}

void BpeModel::encode_word(std::string_view word, std::vector<TokenId>& out) const {
  WordCache::of_this_thread().encode(word, serial_, out, [&] { encode_uncached(word, out); });
}

void BpeModel::encode_uncached(std::string_view word, std::vector<TokenId>& out) const {
  if (parts_.ignore_merges) {
    if (const auto found = by_text_.find(word); found != by_text_.end()) return out.push_back(found->second);
  }
  const size_t size_before = out.size();
  constexpr size_t kLongWord = 1 << 16;  // not to take twice what is needed while `out` grows
  if (const size_t needed = size_before + word.size(); word.size() > kLongWord && needed > out.capacity()) {
    out.reserve(std::max(needed, out.capacity() / 2 * 3));
  }
  append_symbols(word, out);
  out.resize(size_before + merge_table_.apply(std::span(out).subspan(size_before)));
}

TokenId BpeModel::symbol_id(std::string_view symbol, uint32_t code_point, bool is_first, bool is_last) const {
  const bool has_prefix = !is_first && parts_.continuing_subword_prefix;
  const bool has_suffix = is_last && parts_.end_of_word_suffix;
  if (!has_prefix && !has_suffix) {
    const uint32_t index = pieces_are_bytes_ ? static_cast<unsigned char>(symbol[0]) : code_point;
    return index < symbol_ids_.size() ? symbol_ids_[index] : -1;
  }
  std::string text(symbol);
  if (has_prefix) text.insert(0, *parts_.continuing_subword_prefix);
  if (has_suffix) text += *parts_.end_of_word_suffix;
  const auto found = by_text_.find(text);
  return found == by_text_.end() ? -1 : found->second;
}

void BpeModel::append_symbols(std::string_view word, std::vector<TokenId>& out) const {
  bool unknown_waits = false;  // an unknown token is written when it is known that no more join it
  const auto flush_unknown = [&] {
    if (unknown_waits) out.push_back(unknown_id_);
    unknown_waits = false;
  };
  for (size_t begin = 0; begin < word.size();) {
    const CodePoint character = pieces_are_bytes_ ? CodePoint{0, 1} : decode_utf8(word, begin);
    const std::string_view symbol = word.substr(begin, character.length);
    const bool is_first = begin == 0;
    begin += character.length;
    const TokenId id = symbol_id(symbol, character.value, is_first, begin == word.size());
    if (id >= 0) {
      flush_unknown();
      out.push_back(id);
      continue;
    }
    if (parts_.byte_fallback) {
      const std::string written = pieces_are_bytes_ ? byte_alphabet_encode(symbol) : std::string(symbol);
      const auto fallback_of = [&](char byte) { return fallback_ids_[static_cast<unsigned char>(byte)]; };
      if (std::ranges::all_of(written, [&](char byte) { return fallback_of(byte) >= 0; })) {
        for (const char byte : written) out.push_back(fallback_of(byte));  // before a waiting unknown, as the library
        continue;
      }
    }
    if (unknown_id_ < 0) continue;  // what no token can stand for is lost, as in the library
    if (!parts_.fuse_unknown) flush_unknown();
    unknown_waits = true;
  }
  flush_unknown();
}

}  // namespace brisk
