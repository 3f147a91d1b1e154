#include "infer/answer/class_scores.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace brisk {
namespace {

// Labels 0 0 0 0 1 1 1 2 2 3, predictions 0 0 1 2 1 1 0 2 0 3 of five classes: figures of scikit-learn's
// classification_report.
ClassScores ten_examples() {
  ClassScores scores(5);
  const int32_t labels[] = {0, 0, 0, 0, 1, 1, 1, 2, 2, 3}, predicted[] = {0, 0, 1, 2, 1, 1, 0, 2, 0, 3};
  for (size_t i = 0; i < 10; ++i) scores.add(labels[i], predicted[i]);
  return scores;
}

TEST(ClassScores, AreThoseOfScikitLearn) {
  const ClassScores scores = ten_examples();
  EXPECT_DOUBLE_EQ(scores.accuracy(), 0.6);
  EXPECT_DOUBLE_EQ(scores.of_class(0).precision, 0.5);
  EXPECT_DOUBLE_EQ(scores.of_class(0).recall, 0.5);
  EXPECT_NEAR(scores.of_class(1).f1, 2.0 / 3, 1e-12);
  EXPECT_DOUBLE_EQ(scores.of_class(2).recall, 0.5);
  EXPECT_DOUBLE_EQ(scores.of_class(3).f1, 1);
  EXPECT_NEAR(scores.macro().f1, (0.5 + 2.0 / 3 + 0.5 + 1) / 4, 1e-12);  // the fifth class does not occur
  EXPECT_NEAR(scores.weighted().f1, 0.4 * 0.5 + 0.3 * 2 / 3 + 0.2 * 0.5 + 0.1, 1e-12);
  EXPECT_EQ(scores.confused(0, 2), 1);
  EXPECT_EQ(scores.confused(2, 0), 1);
  EXPECT_EQ(scores.confused(4, 4), 0);
}

TEST(ClassScores, HaveWilsonsInterval) {
  ClassScores scores(2);
  for (int i = 0; i < 20; ++i) scores.add(0, i < 13 ? 0 : 1);  // 65 % of 20
  const auto [low, high] = scores.accuracy_interval();
  EXPECT_NEAR(low, 0.4329, 1e-4);
  EXPECT_NEAR(high, 0.8188, 1e-4);
  ClassScores perfect(2);
  perfect.add(1, 1);
  EXPECT_GT(perfect.accuracy_interval().low, 0.2);
  EXPECT_LT(perfect.accuracy_interval().low, 0.21);
  EXPECT_DOUBLE_EQ(perfect.accuracy_interval().high, 1);
}

TEST(ClassScores, OfNothingAreZeroAndCertainOfNothing) {
  const ClassScores scores(3);
  EXPECT_EQ(scores.accuracy(), 0);
  EXPECT_EQ(scores.accuracy_interval().low, 0);
  EXPECT_EQ(scores.accuracy_interval().high, 1);
  EXPECT_EQ(scores.macro().f1, 0);
}

TEST(ClassScores, AreOneJsonObjectWithAMatrix) {
  const auto json = nlohmann::json::parse(scores_json(ten_examples(), {"a", "b", "c", "d", "e"}));
  EXPECT_DOUBLE_EQ(json["accuracy"], 0.6);
  EXPECT_EQ(json["confusion"][0], nlohmann::json({2, 1, 1, 0, 0}));
  EXPECT_EQ(json["classes"][3]["label"], "d");
}

TEST(ClassScores, OfManyClassesListWhatOccurs) {
  ClassScores scores(5000);
  scores.add(4999, 17);
  std::vector<std::string> names;
  for (int i = 0; i < 5000; ++i) names.push_back("class " + std::to_string(i));
  const auto json = nlohmann::json::parse(scores_json(scores, names));
  ASSERT_EQ(json["confusion"].size(), 1u);
  EXPECT_EQ(json["confusion"][0]["predicted"], "class 17");
  EXPECT_NE(scores_text(scores, names).find("and 4980 more"), std::string::npos);
}

}  // namespace
}  // namespace brisk
