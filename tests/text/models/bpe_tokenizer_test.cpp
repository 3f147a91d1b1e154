#include "text/models/bpe_tokenizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/error.h"
#include "support/load_and_encode.h"
#include "support/sample_text.h"
#include "text/pipeline/words.h"

namespace brisk {
namespace {

using testing::encode;

std::unique_ptr<Tokenizer> trained_on(std::string_view text, int64_t vocab_size) {
  return train_bpe({&text, 1}, {.vocab_size = vocab_size}).tokenizer;
}

// BPE as it is explained: in each word, join the pair of the lowest rank, the leftmost first, until none is left.
std::vector<TokenId> encode_slowly(const BpeTokenizer& tokenizer, std::string_view text) {
  std::map<std::pair<TokenId, TokenId>, Merge> merges;
  for (const Merge& merge : tokenizer.model().merges) merges[{merge.left, merge.right}] = merge;
  std::vector<TokenId> ids;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = word_end(text, begin);
    std::vector<TokenId> word;
    for (; begin < end; ++begin) word.push_back(static_cast<unsigned char>(text[begin]));
    for (;;) {
      const Merge* best = nullptr;
      size_t best_place = 0;
      for (size_t i = 0; i + 1 < word.size(); ++i) {
        const auto found = merges.find({word[i], word[i + 1]});
        if (found == merges.end() || (best && found->second.rank >= best->rank)) continue;
        best = &found->second;
        best_place = i;
      }
      if (!best) break;
      word[best_place] = best->result;
      word.erase(word.begin() + best_place + 1);
    }
    ids.insert(ids.end(), word.begin(), word.end());
  }
  return ids;
}

TEST(BpeTokenizer, GivesBackAnyBytes) {
  const auto tokenizer = trained_on(testing::prose(5000, 1) + testing::tricky_text(5000, 1), 2000);
  for (uint32_t seed = 0; seed < 30; ++seed) {
    for (const std::string& text : {testing::random_bytes(3000, seed), testing::tricky_text(1000, seed),
                                    testing::prose(300, seed), std::string(seed, '\0'), std::string(50 * seed, ' ')}) {
      ASSERT_EQ(tokenizer->decode(encode(*tokenizer, text)), text) << "seed " << seed;
    }
  }
}

TEST(BpeTokenizer, EncodesAsTheSlowMethodDoes) {
  const auto tokenizer = trained_on(testing::prose(5000, 1) + testing::tricky_text(5000, 1), 2000);
  const auto& bpe = dynamic_cast<const BpeTokenizer&>(*tokenizer);
  for (uint32_t seed = 0; seed < 10; ++seed) {
    std::string text = testing::prose(200, seed) + testing::tricky_text(300, seed) + testing::random_bytes(300, seed);
    ASSERT_EQ(encode(bpe, text), encode_slowly(bpe, text)) << "seed " << seed;
    ASSERT_EQ(encode(bpe, text), encode_slowly(bpe, text)) << "seed " << seed << ", from the cache";
  }
  for (const size_t length : {1, 2, 8, 9, 16, 17, 23, 24, 25, 47, 48, 49, 50, 500}) {  // both sides of every limit
    std::string word = testing::prose(300, static_cast<uint32_t>(length));
    std::erase_if(word, [](char c) { return c == ' ' || c == '\n' || c == '.' || c == ',' || c == '\''; });
    word.resize(length);
    ASSERT_EQ(encode(bpe, word), encode_slowly(bpe, word)) << "length " << length;
  }
}

TEST(BpeTokenizer, AppendsToWhatIsThere) {
  const auto tokenizer = trained_on("", 257);
  std::vector<TokenId> ids = {7};
  tokenizer->encode("ab", ids);
  tokenizer->encode("", ids);
  EXPECT_EQ(ids, (std::vector<TokenId>{7, 'a', 'b'}));
}

TEST(BpeTokenizer, FindsTheSpecialTokenInText) {
  std::string text;
  for (int i = 0; i < 100; ++i) text += "<|endoftext|> ";
  const auto tokenizer = trained_on(text, 400);
  const TokenId end = *tokenizer->end_of_document();
  EXPECT_EQ(encode(*tokenizer, "<|endoftext|>"), (std::vector<TokenId>{end}));
  const std::vector<TokenId> ids = encode(*tokenizer, "a<|endoftext|><|endoftext|> <|endoftext");
  EXPECT_EQ(std::ranges::count(ids, end), 2);
  EXPECT_EQ(tokenizer->decode(ids), "a<|endoftext|><|endoftext|> <|endoftext");
}

TEST(BpeTokenizer, TellsTokenizersApartByFingerprint) {
  const auto tokenizer = trained_on("aaaa bbbb aaaa bbbb", 262);
  const nlohmann::json json = nlohmann::json::parse(dynamic_cast<const BpeTokenizer&>(*tokenizer).to_json());
  const auto fingerprint_with = [&](const auto& change) {
    nlohmann::json changed = json;
    change(changed);
    return tokenizer_from_memory(changed.dump(), "changed")->fingerprint();
  };
  EXPECT_EQ(fingerprint_with([](auto&) {}), tokenizer->fingerprint());
  EXPECT_EQ(fingerprint_with([](auto& j) { j["decoder"] = nullptr; }), tokenizer->fingerprint());
  EXPECT_NE(fingerprint_with([](auto& j) { j["normalizer"] = {{"type", "NFC"}}; }), tokenizer->fingerprint());
  EXPECT_NE(fingerprint_with([](auto& j) { j["pre_tokenizer"]["add_prefix_space"] = true; }), tokenizer->fingerprint());
  EXPECT_NE(fingerprint_with([](auto& j) { j["added_tokens"][0]["lstrip"] = true; }), tokenizer->fingerprint());
  EXPECT_NE(fingerprint_with([](auto& j) { j["model"]["ignore_merges"] = true; }), tokenizer->fingerprint());
  EXPECT_NE(fingerprint_with([](auto& j) { j["model"]["merges"].erase(0); }), tokenizer->fingerprint());
}

TEST(BpeTokenizer, DoesNotMixUpTheWordsOfTwoTokenizersOnOneThread) {
  const auto one = trained_on("aaaa bbbb aaaa bbbb", 300);
  const auto other = trained_on("", 257);
  const std::vector<TokenId> joined = encode(*one, "aaaa");
  EXPECT_LT(joined.size(), 4u);
  EXPECT_EQ(encode(*other, "aaaa"), (std::vector<TokenId>{'a', 'a', 'a', 'a'}));
  EXPECT_EQ(encode(*one, "aaaa"), joined);
}

TEST(BpeTokenizer, TellsWordsApartThatDifferInZeroBytes) {
  const auto tokenizer = trained_on("", 257);
  for (const size_t size : {1, 2, 3, 4, 5, 8, 9, 16, 17, 24, 25}) {
    const std::string zeros(size, '\0');
    EXPECT_EQ(tokenizer->decode(encode(*tokenizer, zeros)), zeros);
  }
}

TEST(BpeTokenizer, EncodesTheSameOnManyThreadsAtOnce) {
  const std::string text = testing::prose(20000, 3);
  const auto tokenizer = trained_on(text, 1000);
  const std::vector<TokenId> expected = encode(*tokenizer, text);
  std::vector<std::vector<TokenId>> results(4);
  std::vector<std::thread> threads;
  for (std::vector<TokenId>& result : results) threads.emplace_back([&] { tokenizer->encode(text, result); });
  for (std::thread& thread : threads) thread.join();
  for (const std::vector<TokenId>& result : results) EXPECT_EQ(result, expected);
}

TEST(BpeTokenizer, RefusesIdsOutsideTheVocabulary) {
  const auto tokenizer = trained_on("", 257);
  EXPECT_THROW(tokenizer->piece(257), UserError);
  EXPECT_THROW(tokenizer->piece(-1), UserError);
  EXPECT_THROW(tokenizer->decode(std::vector<TokenId>{1, 2, 1000000}), UserError);
}

}  // namespace
}  // namespace brisk
