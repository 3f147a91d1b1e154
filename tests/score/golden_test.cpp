// BLEU and chrF of difficult texts are sacreBLEU's (scripts/make_metrics_golden.py).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/text/lowercase.h"
#include "score/bleu.h"
#include "score/chrf.h"
#include "support/scratch_folder.h"

namespace brisk {
namespace {

const nlohmann::json& golden() {
  static const auto content =
      nlohmann::json::parse(test::contents_of(std::string(BRISK_SCORE_GOLDEN) + "/scores.json"));
  return content;
}

// A pair's hypothesis, and as many of its references as asked for.
std::vector<std::string> texts_of(const nlohmann::json& pair, size_t references) {
  auto texts = pair.get<std::vector<std::string>>();
  texts.resize(1 + references);
  return texts;
}

template <typename Metric>
void add(const std::vector<std::string>& texts, Metric& metric) {
  const std::vector<std::string_view> references(texts.begin() + 1, texts.end());
  metric.add(texts[0], references);
}

BleuOptions bleu_options(const nlohmann::json& json) {
  BleuOptions options{.tokenizer = bleu_tokenizer_from(json["tokenize"].get<std::string>(), ""),
                      .lowercase = json["lowercase"],
                      .smoothing = bleu_smoothing_from(json.value("smooth_method", "exp"), ""),
                      .effective_order = json.value("effective_order", false)};
  if (json.contains("smooth_value")) options.smooth_value = json["smooth_value"].get<double>();
  return options;
}

ChrfOptions chrf_options(const nlohmann::json& json) {
  return {.word_order = json["word_order"], .lowercase = json["lowercase"]};
}

std::vector<int64_t> numbers(const BleuStatistics& statistics) {
  std::vector<int64_t> all = {statistics.hypothesis_length, statistics.reference_length};
  all.insert(all.end(), statistics.matches.begin(), statistics.matches.end());
  all.insert(all.end(), statistics.totals.begin(), statistics.totals.end());
  return all;
}

std::vector<int64_t> numbers(const ChrfStatistics& statistics, int orders) {
  std::vector<int64_t> all;
  for (int i = 0; i < orders; ++i) {
    const ChrfStatistics::Order& order = statistics.orders[i];
    all.insert(all.end(), {order.in_hypothesis, order.in_reference, order.matches});
  }
  return all;
}

TEST(ScoreGolden, BleuIsSacreBleus) {
  for (const auto& expected : golden()["bleu"]) {
    SCOPED_TRACE(expected["signature"].get<std::string>());
    const BleuOptions options = bleu_options(expected["options"]);
    Bleu corpus(options);
    for (size_t i = 0; i < golden()["pairs"].size(); ++i) {
      const auto texts = texts_of(golden()["pairs"][i], expected["references"]);
      Bleu pair(options);
      add(texts, pair);
      corpus.merge(pair);
      if (!expected.contains("statistics")) continue;
      ASSERT_EQ(numbers(pair.statistics()), expected["statistics"][i].get<std::vector<int64_t>>())
          << "pair " << i << ": " << golden()["pairs"][i];
    }
    const BleuScore score = corpus.score();
    EXPECT_NEAR(score.score, expected["score"].get<double>(), 1e-10);
    EXPECT_EQ(fmt::format("BLEU = {:.2f} {}", score.score, score.details()), expected["printed"].get<std::string>());
    const std::string signature = expected["signature"];
    EXPECT_EQ(corpus.signature().substr(0, signature.size()), signature);
    EXPECT_EQ(corpus.signature().substr(signature.size(), 6), "brisk-");
  }
}

TEST(ScoreGolden, SentenceBleuIsSacreBleus) {
  int compared = 0;
  for (const auto& expected : golden()["bleu"]) {
    if (!expected.contains("sentences")) continue;
    BleuOptions options = bleu_options(expected["options"]);
    options.effective_order = true;
    for (size_t i = 0; i < golden()["pairs"].size(); ++i, ++compared) {
      Bleu pair(options);
      add(texts_of(golden()["pairs"][i], 1), pair);
      ASSERT_NEAR(pair.score().score, expected["sentences"][i].get<double>(), 1e-10) << golden()["pairs"][i];
    }
  }
  EXPECT_GT(compared, 100);
}

TEST(ScoreGolden, ChrfIsSacreBleus) {
  for (const auto& expected : golden()["chrf"]) {
    SCOPED_TRACE(expected["signature"].get<std::string>());
    const ChrfOptions options = chrf_options(expected["options"]);
    Chrf corpus(options);
    for (size_t i = 0; i < golden()["pairs"].size(); ++i) {
      Chrf pair(options);
      add(texts_of(golden()["pairs"][i], expected["references"]), pair);
      corpus.merge(pair);
      ASSERT_EQ(numbers(pair.statistics(), kChrfCharacterOrders + options.word_order),
                expected["statistics"][i].get<std::vector<int64_t>>())
          << "pair " << i << ": " << golden()["pairs"][i];
    }
    EXPECT_NEAR(corpus.score(), expected["score"].get<double>(), 1e-10);
    EXPECT_EQ(fmt::format("{} = {:.2f}", chrf_name(options), corpus.score()), expected["printed"].get<std::string>());
    const std::string signature = expected["signature"];
    EXPECT_EQ(corpus.signature().substr(0, signature.size()), signature);
  }
}

TEST(Score, AddsUpInAnyOrder) {
  Bleu whole, even, odd;
  Chrf whole_chrf, even_chrf, odd_chrf;
  for (size_t i = 0; i < golden()["pairs"].size(); ++i) {
    const auto texts = texts_of(golden()["pairs"][i], 1);
    add(texts, whole);
    add(texts, i % 2 ? odd : even);
    add(texts, whole_chrf);
    add(texts, i % 2 ? odd_chrf : even_chrf);
  }
  odd.merge(even);
  odd_chrf.merge(even_chrf);
  EXPECT_EQ(odd.statistics(), whole.statistics());
  EXPECT_EQ(odd_chrf.statistics(), whole_chrf.statistics());
  EXPECT_EQ(odd.score().score, whole.score().score);
}

TEST(Score, SaysHowManyReferencesThereAre) {
  Bleu bleu;
  EXPECT_EQ(bleu.signature().substr(0, 8), "nrefs:1|");
  bleu.add("a", {"a", "b"});
  EXPECT_EQ(bleu.signature().substr(0, 8), "nrefs:2|");
  Bleu other;
  other.merge(bleu);
  EXPECT_EQ(other.signature().substr(0, 8), "nrefs:2|");
  bleu.add("a", "a");
  EXPECT_EQ(bleu.signature().substr(0, 10), "nrefs:var|");
}

TEST(Score, NothingIsWorthNothing) {
  EXPECT_EQ(Bleu().score().score, 0);
  EXPECT_EQ(Bleu().score().details(), "0.0/0.0/0.0/0.0 (BP = 1.000 ratio = 0.000 hyp_len = 0 ref_len = 0)");
  EXPECT_EQ(Chrf().score(), 0);
}

TEST(Score, BytesThatAreNotUtf8AreCharacters) {
  Bleu same({.tokenizer = BleuTokenizer::kChar}), other({.tokenizer = BleuTokenizer::kChar});
  same.add("a\xFF\xC0 bcd", "a\xFF\xC0 bcd");
  other.add("a\xFF\xC0 bcd", "a\xFE\xC0 bcd");
  EXPECT_NEAR(same.score().score, 100, 1e-9);
  EXPECT_EQ(other.statistics().matches[0], 5);
  EXPECT_EQ(other.statistics().totals[0], 6);
  Chrf chrf;
  chrf.add("\xFF", "\xFE");
  EXPECT_EQ(chrf.score(), 0);
}

// A text of one word again and again, and one of marks and sigmas: neither takes more than linear time.
TEST(Score, LongLinesTakeLinearTime) {
  std::string words, sigmas = "a", points;
  for (int i = 0; i < 200'000; ++i) words += "ab ";
  for (int i = 0; i < 100'000; ++i) sigmas += "\u0301\u03A3";
  for (int i = 0; i < 300'000; ++i) points += i % 3 ? "." : "1";
  for (const std::string& text : {words, sigmas, points}) {
    Bleu bleu({.lowercase = true});
    bleu.add(text, text);
    Chrf chrf({.word_order = 2, .lowercase = true});
    chrf.add(text, text);
    EXPECT_EQ(chrf.score(), 100);
  }
}

TEST(Lowercase, IsPythons) {
  EXPECT_EQ(lowercase_text("ΣΊΣΥΦΟΣ ΑΣ. Σ ΑΣ\u0301Β ΑΣ'"), "σίσυφος ας. σ ασ\u0301β ας'");
  EXPECT_EQ(lowercase_text("İ\xFFÄẞ"), "i\u0307\xFFäß");
}

}  // namespace
}  // namespace brisk
