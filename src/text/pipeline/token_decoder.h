// The "decoder" of a tokenizer.json: from tokens as they are written in files to text.
//
//   const TokenDecoder decoder(json, "tokenizer.json: decoder");     // UserError if unsupported
//   decoder.decode({"Ġthe", "Ġcat"})                                 // " the cat" for ByteLevel
//   decoder.piece("Ġcat")                                            // " cat"
//
// Unlike the library, this preserves bytes that are not UTF-8 instead of replacing them by U+FFFD.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace brisk {

class TokenDecoder {
 public:
  TokenDecoder();  // tokens with spaces between them
  TokenDecoder(const nlohmann::json& component, const std::string& place);
  ~TokenDecoder();
  TokenDecoder(TokenDecoder&&) noexcept;
  TokenDecoder& operator=(TokenDecoder&&) noexcept;

  std::string decode(std::vector<std::string> tokens) const;

  // What one token adds to a text, wherever it stands.
  std::string piece(const std::string& token) const;

  // A text is its pieces, one after the other.
  bool joins_pieces() const;

 private:
  struct Step;
  void add(const nlohmann::json& component, const std::string& place, int depth);

  std::vector<Step> steps_;
};

}  // namespace brisk
