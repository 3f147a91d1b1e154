// A folder of its own for a test, removed at the end, and a tokenizer that is easy to foresee.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/error.h"
#include "text/tokenizer.h"

namespace brisk {

class ScratchFolder {
 public:
  ScratchFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "brisk-data-XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~ScratchFolder() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }

  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

  std::string write(const std::string& name, const std::string& contents) const {
    const std::string path = path_ + "/" + name;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path, std::ios::binary) << contents;
    return path;
  }

 private:
  std::string path_;
};

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
  try {
    body();
  } catch (const UserError& error) {
    return error.what();
  }
  ADD_FAILURE() << "no UserError was thrown";
  return "";
}

}  // namespace brisk

#define EXPECT_HAS(text, part) \
  EXPECT_NE((text).find(part), std::string::npos) << "'" << (part) << "' is not in: " << (text)
