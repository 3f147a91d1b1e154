// Beam search against a search through all texts of a tiny vocabulary.
#include "infer/answer/beam_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "base/random.h"

namespace brisk {
namespace {

constexpr int64_t kVocabulary = 4;
constexpr TokenId kEnd = 0;

// Log probabilities of the next token that depend on the whole text so far.
std::vector<float> next_of(const std::vector<TokenId>& text, uint64_t seed) {
  uint64_t key = random_key({seed});
  for (const TokenId token : text) key = random_key({key, static_cast<uint64_t>(token) + 1});
  std::vector<float> values;
  double sum = 0;
  for (int64_t i = 0; i < kVocabulary; ++i) {
    values.push_back(static_cast<float>(std::exp(4 * random_uniform(key, static_cast<uint64_t>(i)))));
    sum += values.back();
  }
  for (float& value : values) value = static_cast<float>(std::log(value / sum));
  return values;
}

std::vector<BeamSearch::Found> search(const BeamOptions& options, int64_t max_length, uint64_t seed) {
  BeamSearch search(options, kEnd, max_length);
  while (!search.is_done()) {
    std::vector<float> all;
    for (const BeamSearch::Running& running : search.running()) {
      const std::vector<float> row = next_of(running.tokens, seed);
      all.insert(all.end(), row.begin(), row.end());
    }
    search.advance(all);
  }
  return search.found();
}

// Every text of at most `max_length` tokens, the end token counted, that ends or is as long as that; the best first.
void add_all(std::vector<TokenId> text, double sum, const BeamOptions& options, int64_t max_length, uint64_t seed,
             std::vector<BeamSearch::Found>& all) {
  const std::vector<float> next = next_of(text, seed);
  const auto length = static_cast<double>(text.size() + 1);
  for (TokenId token = 0; token < kVocabulary; ++token) {
    const double with = sum + next[static_cast<size_t>(token)], score = with / std::pow(length, options.length_penalty);
    std::vector<TokenId> longer = text;
    if (token != kEnd) longer.push_back(token);
    if (token == kEnd || std::ssize(longer) == max_length) {
      all.push_back({longer, score, token == kEnd});
    } else {
      add_all(longer, with, options, max_length, seed, all);
    }
  }
}
std::vector<BeamSearch::Found> every_text(const BeamOptions& options, int64_t max_length, uint64_t seed) {
  std::vector<BeamSearch::Found> all;
  add_all({}, 0, options, max_length, seed, all);
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.score > b.score; });
  return all;
}

TEST(BeamSearch, WideEnoughFindsTheBestTextsOfAll) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    for (const double penalty : {0.0, 0.6, 1.0, 2.0}) {
      const BeamOptions options{.beams = 400, .length_penalty = penalty, .early_stopping = EarlyStopping::never};
      const auto found = search(options, 5, seed), all = every_text(options, 5, seed);
      ASSERT_GE(found.size(), 10u);
      for (size_t i = 0; i < 10; ++i) {
        EXPECT_EQ(found[i].tokens, all[i].tokens) << "seed " << seed << ", penalty " << penalty << ", place " << i;
        EXPECT_NEAR(found[i].score, all[i].score, 1e-6);
        EXPECT_EQ(found[i].ended, all[i].ended);
      }
    }
  }
}

TEST(BeamSearch, OfOneBeamThatStopsAtOnceIsGreedy) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    std::vector<TokenId> greedy;
    bool ended = false;
    for (int64_t i = 0; i < 6 && !ended; ++i) {
      const std::vector<float> next = next_of(greedy, seed);
      const auto token = static_cast<TokenId>(std::max_element(next.begin(), next.end()) - next.begin());
      ended = token == kEnd;
      if (!ended) greedy.push_back(token);
    }
    const auto found = search({.beams = 1, .early_stopping = EarlyStopping::first}, 6, seed);
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].tokens, greedy) << seed;
    EXPECT_EQ(found[0].ended, ended);
  }
}

TEST(BeamSearch, HasNoWorseTextsWithMorePatience) {
  int differ = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    const auto best = [&](EarlyStopping rule) {
      return search({.beams = 2, .early_stopping = rule}, 8, seed)[0].score;
    };
    const double first = best(EarlyStopping::first), heuristic = best(EarlyStopping::heuristic),
                 never = best(EarlyStopping::never);
    EXPECT_GE(heuristic, first) << seed;
    EXPECT_GE(never, heuristic) << seed;
    differ += never > first;
  }
  EXPECT_GT(differ, 0) << "the rules decide something";
}

TEST(BeamSearch, OfALargerPenaltyPrefersLongerTexts) {
  double shorter = 0, longer = 0;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    shorter += static_cast<double>(search({.beams = 4, .length_penalty = 0}, 8, seed)[0].tokens.size());
    longer += static_cast<double>(search({.beams = 4, .length_penalty = 2}, 8, seed)[0].tokens.size());
  }
  EXPECT_GT(longer, shorter);
}

TEST(BeamSearch, TellsTheParentsOfItsTexts) {
  BeamSearch search({.beams = 3}, kEnd, 6);
  std::vector<std::vector<TokenId>> before = {{}};
  while (!search.is_done()) {
    std::vector<float> all;
    for (const BeamSearch::Running& running : search.running()) {
      const std::vector<float> row = next_of(running.tokens, 3);
      all.insert(all.end(), row.begin(), row.end());
    }
    search.advance(all);
    std::vector<std::vector<TokenId>> now;
    for (const BeamSearch::Running& running : search.running()) {
      std::vector<TokenId> parent = running.tokens;
      parent.pop_back();
      EXPECT_EQ(parent, before[static_cast<size_t>(running.parent)]);
      now.push_back(running.tokens);
    }
    before = now;
  }
}

TEST(BeamSearch, TakesOnlyTokensThatAreKnown) {
  BeamSearch search({.beams = 2}, kEnd, 3);
  const std::vector<float> row = {-5, -4, -0.01f, -0.02f};  // the last two are no tokens of the vocabulary
  while (!search.is_done()) {
    std::vector<float> all;
    for (size_t i = 0; i < search.running().size(); ++i) all.insert(all.end(), row.begin(), row.end());
    search.advance(all, 2);
  }
  for (const BeamSearch::Found& found : search.found()) {
    for (const TokenId token : found.tokens) EXPECT_LT(token, 2);
  }
}

TEST(BeamSearch, TakesNoTokenThatCannotBe) {
  constexpr float kNever = -std::numeric_limits<float>::infinity();
  BeamSearch search({.beams = 3}, kEnd, 2);
  search.advance(std::vector<float>{kNever, -1, kNever, -2});
  ASSERT_EQ(search.running().size(), 2u);
  EXPECT_EQ(search.running()[0].tokens, (std::vector<TokenId>{1}));
  EXPECT_EQ(search.running()[1].tokens, (std::vector<TokenId>{3}));
  search.advance(std::vector<float>{-1, kNever, kNever, kNever, kNever, kNever, kNever, kNever});
  ASSERT_TRUE(search.is_done());
  ASSERT_EQ(search.found().size(), 1u);
  EXPECT_EQ(search.found()[0].tokens, (std::vector<TokenId>{1}));
}

}  // namespace
}  // namespace brisk
