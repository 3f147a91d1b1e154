// A tokenizer that is easy to foresee, and what the tests of data expect of messages.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "base/error.h"
#include "support/scratch_folder.h"
#include "text/tokenizer.h"

namespace brisk {

using test::ScratchFolder;

// A token a byte; 256 ends a document.
class ByteTokenizer : public Tokenizer {
 public:
  explicit ByteTokenizer(uint64_t fingerprint = 1, int64_t vocab_size = 257)
      : fingerprint_(fingerprint), vocab_size_(vocab_size) {}
  void encode(std::string_view text, std::vector<TokenId>& out) const override {
    for (const char c : text) out.push_back(static_cast<unsigned char>(c));
  }
  std::string decode(std::span<const TokenId> ids) const override {
    std::string text;
    for (const TokenId id : ids) text += piece(id);
    return text;
  }
  std::string piece(TokenId id) const override {
    return id < 256 ? std::string(1, static_cast<char>(id)) : std::string("|");
  }
  int64_t vocab_size() const override { return vocab_size_; }
  std::optional<TokenId> end_of_document() const override { return static_cast<TokenId>(vocab_size_ - 1); }
  std::optional<TokenId> start_of_text() const override { return std::nullopt; }
  uint64_t fingerprint() const override { return fingerprint_; }
  void save(const std::string&) const override {}

 private:
  uint64_t fingerprint_;
  int64_t vocab_size_;
};

// Runs `body`, which must throw a UserError, and returns its message.
template <typename Body>
std::string user_error_of(const Body& body) {
  const std::string message = test::message_of<UserError>(body);
  EXPECT_FALSE(message.empty()) << "no UserError was thrown";
  return message;
}

}  // namespace brisk

#define EXPECT_HAS(text, part) \
  EXPECT_NE((text).find(part), std::string::npos) << "'" << (part) << "' is not in: " << (text)
