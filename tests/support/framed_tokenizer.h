// A tokenizer of BERT's kind that is easy to foresee: a token a byte, 257 before a text, 258 after each, 259 the mask.
// Small letters go on with a word.
#pragma once

#include "support/byte_tokenizer.h"

namespace brisk {

class FramedTokenizer : public ByteTokenizer {
 public:
  explicit FramedTokenizer(uint64_t fingerprint = 1) : ByteTokenizer(fingerprint, 260) {}
  SequenceTemplate single_template() const override { return {{257}, {}, {258}, false}; }
  SequenceTemplate pair_template() const override { return {{257}, {258}, {258}, true}; }
  std::optional<TokenId> mask_token() const override { return 259; }
  bool continues_word(TokenId id) const override { return id >= 'a' && id <= 'z'; }
};

// "<ab>" of 257 a b 258; the mask is a star.
inline std::string shown(std::span<const int32_t> tokens) {
  std::string text;
  for (const int32_t token : tokens) {
    text += token == 257 ? '<' : token == 258 ? '>' : token == 259 ? '*' : static_cast<char>(token);
  }
  return text;
}

}  // namespace brisk
