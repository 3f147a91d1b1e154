#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "base/runtime.h"
#include "support/sample_text.h"
#include "support/scratch_folder.h"
#include "text/models/wordpiece_tokenizer.h"

namespace brisk {
namespace {

TrainedTokenizer train(std::string_view text, WordPieceTrainingOptions options) {
  return train_wordpiece({&text, 1}, options);
}

std::vector<std::string> tokens_of(const TrainedTokenizer& trained) {
  return dynamic_cast<const WordPieceTokenizer&>(*trained.tokenizer).model().tokens;
}

TEST(WordPieceTraining, LearnsTheFrequentPiecesOfWords) {
  const TrainedTokenizer trained = train("low low low low lot", {.vocab_size = 30});
  EXPECT_EQ(tokens_of(trained),
            (std::vector<std::string>{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "l", "o", "t", "w", "##o", "##t",
                                      "##w", "lo", "low"}));  // every other pair occurs once
  EXPECT_EQ(trained.requested, 30);
  EXPECT_EQ(trained.reached, trained.tokenizer->vocab_size());
  EXPECT_EQ(trained.tokenizer->mask_token(), 4);
  std::vector<TokenId> ids;
  trained.tokenizer->encode_with_specials("low", ids);
  EXPECT_EQ(ids, (std::vector<TokenId>{2, 13, 3}));
}

// The same by counting everything anew for each merge.
std::vector<std::string> learn_slowly(std::string_view text, size_t vocab_size) {
  std::map<std::string, int64_t> words;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    if (end > begin) ++words[std::string(text.substr(begin, end - begin))];
    begin = end + 1;
  }
  std::vector<std::string> tokens = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
  std::set<std::string> first, inside;
  for (const auto& [word, count] : words) {
    for (size_t i = 0; i < word.size(); ++i) {
      first.insert(word.substr(i, 1));
      if (i > 0) inside.insert("##" + word.substr(i, 1));
    }
  }
  tokens.insert(tokens.end(), first.begin(), first.end());
  tokens.insert(tokens.end(), inside.begin(), inside.end());
  std::map<std::string, std::vector<std::string>> pieces;
  for (const auto& [word, count] : words) {
    for (size_t i = 0; i < word.size(); ++i) pieces[word].push_back((i > 0 ? "##" : "") + word.substr(i, 1));
  }
  while (tokens.size() < vocab_size) {
    std::map<std::pair<std::string, std::string>, int64_t> pairs;
    for (const auto& [word, parts] : pieces) {
      for (size_t i = 0; i + 1 < parts.size(); ++i) pairs[{parts[i], parts[i + 1]}] += words[word];
    }
    const auto rank = [&](const std::string& token) { return std::ranges::find(tokens, token) - tokens.begin(); };
    std::pair<std::string, std::string> best;
    int64_t most = 1;
    for (const auto& [pair, count] : pairs) {
      const bool is_first = count == most && std::pair(rank(pair.first), rank(pair.second)) <
                                                 std::pair(rank(best.first), rank(best.second));
      if (count > most || (is_first && most > 1)) std::tie(best, most) = std::pair(pair, count);
    }
    if (most < 2) break;
    const std::string joined = best.first + best.second.substr(2);
    for (auto& [word, parts] : pieces) {
      for (size_t i = 0; i + 1 < parts.size(); ++i) {
        if (parts[i] != best.first || parts[i + 1] != best.second) continue;
        parts[i] = joined;
        parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(i) + 1);
      }
    }
    if (std::ranges::find(tokens, joined) == tokens.end()) tokens.push_back(joined);
  }
  return tokens;
}

TEST(WordPieceTraining, AgreesWithTheSlowMethod) {
  for (uint32_t seed = 0; seed < 4; ++seed) {
    std::string text;
    for (const char c : testing::prose(400, seed)) text += (c >= 'a' && c <= 'z') ? c : ' ';
    EXPECT_EQ(tokens_of(train(text, {.vocab_size = 160})), learn_slowly(text, 160)) << "seed " << seed;
  }
}

TEST(WordPieceTraining, LowercasesAndTakesAccentsOffWhereItIsAskedTo) {
  const std::string_view text = "Éa éA ÉA éa Éa";
  const auto has = [](const std::vector<std::string>& tokens, const char* token) {
    return std::ranges::find(tokens, token) != tokens.end();
  };
  const auto lower = tokens_of(train(text, {.vocab_size = 100, .lowercase = true}));
  EXPECT_TRUE(has(lower, "ea"));
  EXPECT_FALSE(has(lower, "É"));
  const auto cased = tokens_of(train(text, {.vocab_size = 100}));
  EXPECT_TRUE(has(cased, "Éa"));
  EXPECT_FALSE(has(cased, "ea"));
}

TEST(WordPieceTraining, IsTheSameForAnyNumberOfThreads) {
  const std::string text = testing::prose(60000, 1) + testing::tricky_text(60000, 2);  // several pieces
  const std::string_view view = text;
  const int threads_before = thread_pool().size();
  std::vector<uint64_t> fingerprints;
  for (const int threads : {1, 2, 5}) {
    Runtime::current().set_threads(threads);
    fingerprints.push_back(train(view, {.vocab_size = 1500, .lowercase = true}).tokenizer->fingerprint());
  }
  Runtime::current().set_threads(threads_before);
  EXPECT_EQ(fingerprints[0], fingerprints[1]);
  EXPECT_EQ(fingerprints[0], fingerprints[2]);
}

TEST(WordPieceTraining, LeavesTheRarestCharactersOut) {
  const auto tokens = tokens_of(train("aaa aab aab aac", {.vocab_size = 100, .most_characters = 2}));
  EXPECT_EQ(std::ranges::count(tokens, "c"), 0);
  EXPECT_EQ(std::ranges::count(tokens, "b"), 1);
}

TEST(WordPieceTraining, SaysHowManyTokensTheTextNeedsAtLeast) {
  const std::string message = test::message_of<UserError>([] { train("abc", {.vocab_size = 9}); });
  EXPECT_TRUE(test::has(message, "expected 10 ")) << message;
  EXPECT_EQ(train("abc", {.vocab_size = 10}).reached, 10);
  EXPECT_EQ(train("\xFF\xFE", {.vocab_size = 10}).reached, 5);
}

}  // namespace
}  // namespace brisk
