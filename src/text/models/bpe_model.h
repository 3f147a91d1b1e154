// The "model" of a tokenizer.json: a vocabulary and its merges, applied to one piece of text (pre_tokenizer.h).
//
//   BpeModel model(std::move(parts), /*pieces_are_bytes=*/true);
//   model.encode(" cat", ids);         // appends
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/models/merges.h"
#include "text/tokenizer.h"

namespace brisk {

struct BpeModelParts {
  std::vector<std::string> tokens;  // by id, as written in files; empty if no token has the id; none occurs twice
  std::vector<Merge> merges;        // by rank; no pair occurs twice
  std::optional<std::string> unknown_token;
  std::optional<std::string> continuing_subword_prefix, end_of_word_suffix;
  bool fuse_unknown = false;
  bool byte_fallback = false;  // a character without a token becomes <0x..> for each of its bytes
  bool ignore_merges = false;  // a piece that is a token is that token
};

class BpeModel {
 public:
  // `pieces_are_bytes`: the tokens are written in the byte alphabet, the pieces are not; merges begin with bytes.
  // Otherwise merges begin with characters.
  BpeModel(BpeModelParts parts, bool pieces_are_bytes);
  BpeModel(const BpeModel&) = delete;
  BpeModel& operator=(const BpeModel&) = delete;

  void encode(std::string_view piece, std::vector<TokenId>& out) const;

  const BpeModelParts& parts() const { return parts_; }

 private:
  void index_symbols();
  void find_cut();
  void encode_word(std::string_view word, std::vector<TokenId>& out) const;
  void encode_uncached(std::string_view word, std::vector<TokenId>& out) const;
  void append_symbols(std::string_view word, std::vector<TokenId>& out) const;
  TokenId symbol_id(std::string_view symbol, uint32_t code_point, bool is_first, bool is_last) const;

  BpeModelParts parts_;
  bool pieces_are_bytes_;
  std::vector<std::string> texts_;                         // the tokens as they occur in pieces
  std::unordered_map<std::string_view, TokenId> by_text_;  // of texts_; empty unless whole texts are looked up
  std::vector<TokenId> symbol_ids_;                        // by byte or code point; -1: none
  std::array<TokenId, 256> fallback_ids_;
  TokenId unknown_id_ = -1;
  MergeTable merge_table_;
  std::string cut_;  // a character that no merge attaches to a different preceding one (usually the space marker):
                     // text may be split before it; empty if there is none
  uint32_t serial_;  // of this object, for the caches of words that threads keep
};

}  // namespace brisk
