// Error rates, the structure of Markdown and its text are those of jiwer, torchmetrics, zss and DIMTDA's evaluation
// (scripts/make_page_metrics_golden.py).
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "base/error.h"
#include "score/error_rate.h"
#include "score/markdown_page.h"
#include "score/steds.h"
#include "score/text_scores.h"
#include "support/scratch_folder.h"

namespace brisk {
namespace {

using nlohmann::json;

json golden_of(const char* name) {
  return json::parse(test::contents_of(std::string(BRISK_SCORE_GOLDEN) + "/" + name));
}

const json& golden_pages() {
  static const json content = golden_of("pages.json");
  return content;
}

// As "(()(-))": a node for each pair of brackets, "-" for a blank one.
OrderedTree tree_from(const std::string& text) {
  OrderedTree tree;
  std::vector<int> path = {OrderedTree::kNone};
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '(') path.push_back(tree.add(path.back(), text[i + 1] == '-'));
    if (text[i] == ')') path.pop_back();
  }
  return tree;
}

// By the definition, a table of all prefixes.
int64_t plain_distance(const std::vector<uint32_t>& a, const std::vector<uint32_t>& b) {
  std::vector<int64_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = static_cast<int64_t>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    int64_t diagonal = row[0]++;
    for (size_t j = 1; j <= b.size(); ++j) {
      const int64_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({substituted, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

TEST(EditDistance, IsThatOfThePlainTableAtAnyLength) {
  std::mt19937 generator(7);
  const auto draw = [&](uint64_t below) { return generator() % below; };
  EditDistance distance;
  for (int round = 0; round < 300; ++round) {
    std::vector<uint32_t> a(draw(round < 200 ? 70 : 400)), b(draw(round < 200 ? 70 : 400));
    const uint64_t symbols = 1 + draw(6);
    for (uint32_t& symbol : a) symbol = static_cast<uint32_t>(draw(symbols));
    for (uint32_t& symbol : b) symbol = static_cast<uint32_t>(draw(symbols));
    ASSERT_EQ(distance.between(a, b), plain_distance(a, b)) << a.size() << " and " << b.size();
  }
}

TEST(ErrorRate, IsTorchmetricsOfDifficultTexts) {
  const json pairs = golden_of("scores.json")["pairs"];
  ErrorRate cer(TextUnit::kCharacter), wer(TextUnit::kWord);
  for (size_t i = 0; i < pairs.size(); ++i) {
    const std::string hypothesis = pairs[i][0], reference = pairs[i][1];
    ErrorRate characters(TextUnit::kCharacter), words(TextUnit::kWord);
    characters.add(hypothesis, reference);
    words.add(hypothesis, reference);
    const std::vector<int64_t> found = {characters.statistics().errors, characters.statistics().reference_length,
                                        words.statistics().errors, words.statistics().reference_length};
    ASSERT_EQ(found, golden_pages()["errors"][i].get<std::vector<int64_t>>()) << pairs[i];
    cer.merge(characters);
    wer.merge(words);
  }
  EXPECT_NEAR(cer.rate(), golden_pages()["cer"].get<double>(), 1e-6);  // in fp32 there
  EXPECT_NEAR(wer.rate(), golden_pages()["wer"].get<double>(), 1e-6);
}

TEST(ErrorRate, CountsEditsWhereThereIsNoReference) {
  ErrorRate rate(TextUnit::kCharacter);
  rate.add("", "");
  EXPECT_EQ(rate.rate(), 0);
  rate.add("ab", "");
  EXPECT_EQ(rate.rate(), 2);
  rate.add("", "abcd");
  EXPECT_EQ(rate.rate(), 1.5);
}

TEST(ErrorRate, IgnoresCaseWhereAsked) {
  ErrorRate rate(TextUnit::kCharacter, /*lowercase=*/true);
  rate.add("ÄRGER", "ärger");
  EXPECT_EQ(rate.rate(), 0);
}

TEST(TreeEditDistance, IsThatOfZss) {
  TreeEditDistance distance;
  for (const auto& pair : golden_pages()["trees"]) {
    const OrderedTree a = tree_from(pair[0]), b = tree_from(pair[1]);
    ASSERT_EQ(distance.between(a, b), pair[2].get<int64_t>()) << pair;
    ASSERT_EQ(distance.between(b, a), pair[2].get<int64_t>()) << pair;
  }
}

TEST(MarkdownPage, TextAndStructureAreThoseOfDimtdasEvaluation) {
  TextScores scores({.kinds = {TextScoreKind::kSteds, TextScoreKind::kBleuMarkdown, TextScoreKind::kBleuText}});
  double sum = 0;
  for (const auto& page : golden_pages()["pages"]) {
    std::vector<std::string> texts = page["texts"];
    for (size_t i = 0; i < 2; ++i) {
      ASSERT_EQ(text_of_markdown(texts[i], MarkdownParts::kAll), page["markdown"][i].get<std::string>()) << page;
      ASSERT_EQ(text_of_markdown(texts[i]), page["text"][i].get<std::string>()) << page;
    }
    Steds steds;
    steds.add(texts[0], texts[1]);
    ASSERT_NEAR(steds.score(), page["steds"].get<double>(), 1e-6) << page;
    sum += steds.score();
    scores.add(texts[0], texts[1]);
  }
  EXPECT_NEAR(scores.value(TextScoreKind::kSteds), sum / static_cast<double>(golden_pages()["pages"].size()), 1e-6);
  EXPECT_NEAR(scores.value(TextScoreKind::kBleuMarkdown), golden_pages()["bleu_markdown"].get<double>(), 1e-9);
  EXPECT_NEAR(scores.value(TextScoreKind::kBleuText), golden_pages()["bleu_text"].get<double>(), 1e-9);
}

TEST(Steds, ComparesWhereHeadingsAndLinesAreButNotWhatTheySay) {
  Steds same, lacks_a_section;
  same.add("# One\nsome text\n## Two\nmore\nlines", "# Eins\nText\n\n### Zwei\nnoch\nZeilen");
  EXPECT_EQ(same.score(), 100);
  lacks_a_section.add("# A\ntext", "# A\ntext\n# B\ntext");
  EXPECT_NEAR(lacks_a_section.score(), 100 * 4 / 6., 1e-6);
}

TEST(Steds, RefusesWhatIsNoPage) {
  std::string text;
  for (int i = 0; i <= Steds::kMostNodes; ++i) text += "a\n";
  Steds steds;
  EXPECT_THROW(steds.add(text, "a"), UserError);
}

TEST(TextScores, StatisticsOfRanksAddUpToThoseOfOneProcess) {
  TextScoreOptions options{.kinds =
                               text_score_kinds_from("bleu,chrf,cer,wer,steds,bleu_markdown,bleu_text", "--metrics")};
  TextScores whole(options), even(options), odd(options);
  size_t i = 0;
  for (const auto& page : golden_pages()["pages"]) {
    const std::vector<std::string> texts = page["texts"];
    whole.add(texts[0], texts[1]);
    (++i % 2 ? odd : even).add(texts[0], texts[1]);
  }
  odd.add_statistics(even.statistics());
  EXPECT_EQ(odd.statistics(), whole.statistics());
  for (const TextScoreKind kind : options.kinds) {
    EXPECT_EQ(odd.value(kind), whole.value(kind)) << info_of(kind).name;
    EXPECT_EQ(odd.signature(kind), whole.signature(kind));
  }
}

TEST(TextScores, AreCalledByTheirNames) {
  const auto refusal = [](const char* names) {
    try {
      text_score_kinds_from(names, "--metrics");
    } catch (const UserError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_NE(refusal("bleu,blue").find("--metrics: found \"blue\", expected some of bleu, chrf"), std::string::npos);
  EXPECT_NE(refusal("").find("found \"\""), std::string::npos);
  EXPECT_NE(refusal("cer,cer").find("\"cer\" is there twice"), std::string::npos);
}

}  // namespace
}  // namespace brisk
