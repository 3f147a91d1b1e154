#include "data/table/label_check.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace brisk {
namespace {

using testing::AssertionResult;

// `rows` of each label.
LabelRows each(const std::vector<std::string>& names, int64_t rows) {
  LabelRows labels;
  for (const std::string& name : names) labels.emplace_back(name, rows);
  return labels;
}

LabelRows numbered(int64_t first, int64_t count, int64_t rows, int64_t stride = 1) {
  LabelRows labels;
  for (int64_t i = 0; i < count; ++i) labels.emplace_back(fmt::format("{}", first + i * stride), rows);
  return labels;
}

AssertionResult pass(const LabelRows& labels) {
  const LabelFindings found = check_labels(labels);
  if (found.problem.empty() && found.warnings.empty()) return testing::AssertionSuccess();
  return testing::AssertionFailure() << found.problem << fmt::format("{}", fmt::join(found.warnings, "; "));
}

AssertionResult fail(const LabelRows& labels, const std::string& words) {
  const LabelFindings found = check_labels(labels);
  if (found.problem.find(words) != std::string::npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "found: " << found.problem;
}

AssertionResult warns(const LabelRows& labels, const std::string& words) {
  const LabelFindings found = check_labels(labels);
  if (found.problem.empty() && found.warnings.size() == 1 && found.warnings[0].find(words) != std::string::npos)
    return testing::AssertionSuccess();
  return testing::AssertionFailure() << found.problem << " / " << fmt::format("{}", fmt::join(found.warnings, "; "));
}

TEST(LabelCheck, ClassesPass) {
  EXPECT_TRUE(pass(each({"neg", "pos"}, 50)));
  EXPECT_TRUE(pass(each({"no", "unknown", "yes"}, 50)));
  EXPECT_TRUE(pass(numbered(1, 5, 100)));             // stars
  EXPECT_TRUE(pass(numbered(0, 77, 20)));             // banking77
  EXPECT_TRUE(pass(numbered(1, 151, 15)));            // counted from 1
  EXPECT_TRUE(pass(numbered(0, 5000, 12)));           // thousands of them
  EXPECT_TRUE(pass(numbered(48213, 300, 12, 7919)));  // ids
  EXPECT_TRUE(pass(each({"-1", "0", "1"}, 10)));
  EXPECT_TRUE(pass(each({"0.5", "1", "1.5", "2", "2.5", "3", "3.5", "4", "4.5", "5"}, 30)));  // half stars
  EXPECT_TRUE(pass({{"rare", 1}, {"rock", 900}, {"pop", 900}, {"jazz", 30}, {"folk", 25}}));
}

TEST(LabelCheck, NamesWithSeparatorsAreNoLists) {
  EXPECT_TRUE(pass(each({"Paris, France", "Lyon, France", "Berlin, Germany", "Hamburg, Germany"}, 20)));
  EXPECT_TRUE(pass(each({"Sports/Football", "Sports/Tennis", "News/Local", "News/World"}, 20)));
  EXPECT_TRUE(pass(each({"Arts & Crafts", "Science & Technology", "Food & Drink"}, 20)));
  EXPECT_TRUE(pass(each({"C", "C++", "C#", "Java"}, 20)));
  EXPECT_TRUE(pass(each({"very negative", "negative", "neutral", "positive", "very positive"}, 20)));
  EXPECT_TRUE(pass(each({"very-negative", "negative", "neutral", "positive", "very_positive"}, 20)));
  EXPECT_TRUE(pass(each({"New York", "New Jersey", "Jersey City", "York"}, 20)));
  EXPECT_TRUE(pass(each({"comp.sys.mac", "comp.sys.ibm", "rec.autos", "(none)"}, 20)));
}

TEST(LabelCheck, MeasurementsAreRefused) {
  LabelRows scores;
  for (int i = 0; i < 1302; ++i) scores.emplace_back(fmt::format("{:.3f}", i * 0.004), i < 123 ? 2 : 1);
  EXPECT_TRUE(fail(scores, "1,302 different numbers from 0 to 5.204 in 1,425 rows"));
  EXPECT_TRUE(fail(scores, "regression"));
  LabelRows tenths;  // with as many rows as anybody could want
  for (int i = 0; i <= 50; ++i) tenths.emplace_back(fmt::format("{}", i / 10.0), 1000);
  EXPECT_TRUE(fail(tenths, "measurements"));
}

TEST(LabelCheck, NumbersThatMayBeMeasurementsAreDoubted) {
  EXPECT_TRUE(warns(numbered(18, 73, 30), "counts, ages or prices"));
  LabelRows halves;
  for (int i = 0; i <= 20; ++i) halves.emplace_back(fmt::format("{}", i / 2.0), 100);
  EXPECT_TRUE(warns(halves, "3.5 is near 4"));
}

TEST(LabelCheck, ListsAreRefused) {
  EXPECT_TRUE(fail(each({"['love', 'joy']", "['joy', 'love']", "['joy']", "[]"}, 20), "multi-label"));
  EXPECT_TRUE(fail(each({"[0 1 1]", "[1 0 0]"}, 20), "is a list"));
  EXPECT_TRUE(fail(each({"{'joy': 1}", "{'joy': 0}"}, 20), "is a list"));
  EXPECT_TRUE(fail(each({"anger", "joy", "anger,joy", "joy,sad", "anger, sad"}, 20), "3 of 5 labels"));
  EXPECT_TRUE(fail(each({"anger|joy", "joy|sad", "sad|anger"}, 20), "multi-label"));
  EXPECT_TRUE(fail(each({"27", "2,27", "27,3", "3,2", "3"}, 20), "multi-label"));
  EXPECT_TRUE(
      fail(each({"cs.LG", "cs.AI", "stat.ML", "cs.LG stat.ML", "stat.ML cs.LG", "cs.AI cs.LG"}, 20), "multi-label"));
  EXPECT_TRUE(fail(each({"0 1 0", "1 0 0", "0 0 1", "1 1 0"}, 20), "multi-label"));
  EXPECT_TRUE(warns(each({"anger", "joy", "anger,joy"}, 20), "if it is a list"));
}

TEST(LabelCheck, AnswersInSeveralSpellingsAreRefused) {
  EXPECT_TRUE(fail(each({"False", "True", "false"}, 20), "two answers"));
  EXPECT_TRUE(fail(each({"False", "True", "false", "true"}, 20), "\"False\", \"false\""));
  EXPECT_TRUE(fail(each({"0", "1", "no", "yes"}, 20), "write each of them in one way"));
  EXPECT_TRUE(pass(each({"False", "True"}, 20)));
  EXPECT_TRUE(pass(each({"0", "1", "2"}, 20)));
}

TEST(LabelCheck, MostlySingleRowsAreRefused) {
  LabelRows names;
  for (int i = 0; i < 40; ++i) names.emplace_back(fmt::format("user {}", i), i < 5 ? 2 : 1);
  EXPECT_TRUE(fail(names, "40 different labels in 45 rows, 35 of them in one row only"));
  LabelRows texts;
  for (int i = 0; i < 40; ++i) texts.emplace_back(fmt::format("I would not buy number {} again", i), 3);
  EXPECT_TRUE(fail(texts, "free text"));
  EXPECT_TRUE(warns(each({"a", "b", "c", "d"}, 6), "few rows"));
  EXPECT_TRUE(warns(each({"a", "b", "c"}, 1), "nothing that the rows have in common"));
  EXPECT_TRUE(pass(each({"a", "b", "c"}, 3))) << "somebody tries something out";
}

TEST(LabelCheck, InASampleOfManyClassesMostComeOnce) {
  EXPECT_TRUE(check_labels(each({"a", "b", "c", "d"}, 1), false).problem.empty());
  LabelRows names;
  for (int i = 0; i < 400; ++i) names.emplace_back(fmt::format("user {}", i), 1);
  const LabelFindings found = check_labels(names, false);
  EXPECT_TRUE(found.problem.empty() && found.warnings.empty());
  LabelRows scores;
  for (int i = 0; i < 400; ++i) scores.emplace_back(fmt::format("{}", i / 7.0), 1);
  EXPECT_FALSE(check_labels(scores, false).problem.empty());
}

}  // namespace
}  // namespace brisk
