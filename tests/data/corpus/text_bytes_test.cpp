#include "data/corpus/text_bytes.h"

#include <gtest/gtest.h>

#include "data/corpus/corpus.h"
#include "data/token_store/token_cache.h"
#include "support/scratch_folder.h"

namespace brisk {
namespace {

class TextBytes : public ::testing::Test {
 protected:
  // "Line 1 of a té\xC3\xA9xt", ...: a document a line.
  TextBytes() {
    for (int i = 0; i < 50; ++i)
      lines.push_back("Line " + std::to_string(i * i) + " of  a T\xC3\xA9xt, \xF0\x9F\x98\x80");
    write(lines);
  }

  void write(const std::vector<std::string>& documents) {
    std::string text;
    for (const std::string& line : documents) text += line + "\n";
    test::put_contents(folder / "text.txt", text);
  }
  std::unique_ptr<Tokenizer> bpe(int64_t size) const {
    return train_bpe(std::vector<std::string_view>(lines.begin(), lines.end()), {.vocab_size = size}).tokenizer;
  }
  std::shared_ptr<const TokenStream> stream(const Tokenizer& tokenizer, DocumentRule rule = DocumentRule::kLine) {
    Source source({.paths = {folder / "text.txt"}, .document = rule});
    return open_token_cache(source, tokenizer, folder / "cache").stream;
  }
  int64_t bytes_of_lines() const {
    int64_t sum = 0;
    for (const std::string& line : lines) sum += std::ssize(line);
    return sum;
  }

  test::ScratchFolder folder;
  std::vector<std::string> lines;
};

TEST_F(TextBytes, AreThoseOfTheTextWhateverTheTokenizer) {
  for (const int64_t size : {257, 300}) {
    const auto tokenizer = bpe(size);
    const auto tokens = stream(*tokenizer);
    for (const int64_t max_length : {3, 100}) {
      EXPECT_EQ(text_bytes(*tokens, whole_corpus(*tokens, max_length).chunks, *tokenizer), bytes_of_lines()) << size;
    }
  }
}

TEST_F(TextBytes, OfAPartAreThatPartsOwn) {
  const auto tokenizer = bpe(257);
  const auto tokens = stream(*tokenizer, DocumentRule::kFile);
  ASSERT_EQ(tokens->documents(), 1);
  const CorpusSplit split = split_corpus(*tokens, {.max_length = 16, .validation_fraction = 0.2});
  const auto train = text_bytes(*tokens, split.train.chunks, *tokenizer);
  const auto validation = text_bytes(*tokens, split.validation.chunks, *tokenizer);
  ASSERT_TRUE(train && validation);
  EXPECT_EQ(*train, split.train.rows()) << "a token is a byte, and the end is in the other part";
  EXPECT_EQ(*validation, split.validation.rows() - 1);
}

TEST_F(TextBytes, AreNotKnownWhereTheTokenizerLosesText) {
  const auto lower = train_wordpiece(std::vector<std::string_view>(lines.begin(), lines.end()),
                                     {.vocab_size = 200, .lowercase = true});
  const auto tokens = TokenStream::from_documents({{7, 8, 9}}, 2);
  EXPECT_EQ(text_bytes(*tokens, whole_corpus(*tokens, 100).chunks, *lower.tokenizer), std::nullopt);
}

TEST_F(TextBytes, FingerprintIsOfTheTextAlone) {
  const auto small = bpe(257), large = bpe(300);
  const auto fingerprint = [&](const Tokenizer& tokenizer, uint64_t seed, double fraction = 0.2) {
    const auto tokens = stream(tokenizer);
    const CorpusSplit split = split_corpus(*tokens, {.max_length = 8, .validation_fraction = fraction, .seed = seed});
    return text_fingerprint(*tokens, split.validation.chunks, tokenizer);
  };
  EXPECT_EQ(fingerprint(*small, 1), fingerprint(*large, 1));
  EXPECT_NE(fingerprint(*small, 1), fingerprint(*small, 2)) << "other documents are set aside";
  EXPECT_NE(fingerprint(*small, 1), fingerprint(*small, 1, 0.3));
  const uint64_t before = fingerprint(*small, 1);
  lines[0] += "!";
  for (std::string& line : lines) line += ".";
  write(lines);
  EXPECT_NE(fingerprint(*small, 1), before);
}

TEST_F(TextBytes, FingerprintOfTheEndOfADocumentKnowsWhereItBegins) {
  const auto tokenizer = bpe(257);
  const auto tokens = stream(*tokenizer, DocumentRule::kFile);
  const auto fingerprint = [&](int64_t max_length) {
    const CorpusSplit split = split_corpus(*tokens, {.max_length = max_length, .validation_fraction = 0.2});
    return text_fingerprint(*tokens, split.validation.chunks, *tokenizer);
  };
  EXPECT_EQ(fingerprint(16), fingerprint(16));
  EXPECT_NE(fingerprint(16), fingerprint(100));
}

}  // namespace
}  // namespace brisk
