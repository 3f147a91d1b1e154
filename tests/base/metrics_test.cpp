#include "base/metrics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace brisk {
namespace {

Metrics judged(double loss, double accuracy) {
  return {standard_metric("loss", loss), standard_metric("accuracy", accuracy)};
}

TEST(Metrics, AreFoundByNameShortNameAndHuggingFacesName) {
  const Metrics metrics = {standard_metric("loss", 2), standard_metric("macro_f1", 0.5)};
  EXPECT_EQ(metrics.value("macro_f1"), 0.5);
  EXPECT_EQ(metrics.value("f1"), 0.5);
  EXPECT_EQ(metrics.value("eval_loss"), 2);
  EXPECT_EQ(metrics.find("accuracy"), nullptr);
  EXPECT_TRUE(std::isnan(metrics.value("accuracy")));
  EXPECT_EQ(metrics.names(), "loss, macro_f1 (or f1)");
}

TEST(Metrics, AreBetterTheWayTheyGo) {
  EXPECT_TRUE(better(judged(1, 0.5), judged(2, 0.6), "loss"));
  EXPECT_FALSE(better(judged(1, 0.5), judged(2, 0.6), "accuracy"));
  EXPECT_TRUE(better(judged(2, 0.6), judged(1, 0.5), "accuracy"));
  EXPECT_FALSE(better(judged(1, 0.5), judged(1, 0.5), "accuracy"));
}

TEST(Metrics, TheLossDecidesBetweenEquals) {
  EXPECT_TRUE(better(judged(1, 0.5), judged(2, 0.5), "accuracy"));
  EXPECT_FALSE(better(judged(2, 0.5), judged(1, 0.5), "accuracy"));
}

TEST(Metrics, AnythingIsBetterThanNothingUnlessItsLossIsNotFinite) {
  EXPECT_TRUE(better(judged(1, 0), {}, "accuracy"));
  EXPECT_TRUE(better(judged(1, 0.5), {standard_metric("loss", 0.5)}, "accuracy"));
  EXPECT_FALSE(better({}, judged(1, 0.5), "accuracy"));
  EXPECT_FALSE(better(judged(std::nan(""), 0.9), {}, "accuracy"));
  EXPECT_FALSE(better(judged(INFINITY, 0.9), judged(1, 0.5), "accuracy"));
}

TEST(Metrics, WithoutTheMetricThatIsAskedForTheLossDecides) {
  EXPECT_TRUE(better(judged(1, 0.5), judged(2, 0.6), "bleu"));
  EXPECT_TRUE(better(judged(1, 0.5), {}, "bleu"));
}

TEST(Metrics, SayTheirValuesTheOneThatIsAskedForFirst) {
  Metrics metrics = {standard_metric("loss", 0.25), standard_metric("perplexity", 1e9),
                     standard_metric("weighted_f1", 0.5)};
  Metric accuracy = standard_metric("accuracy", 0.912);
  accuracy.low = 0.89;
  accuracy.high = 0.93;
  metrics.add(accuracy);
  EXPECT_EQ(metrics_text(metrics, "accuracy"),
            "accuracy 91.20 % (95 %: 89.00 to 93.00 %), loss 0.2500, perplexity 1e+09");
  EXPECT_EQ(metrics_text({standard_metric("loss", 0.25), standard_metric("weighted_f1", 0.5)}, "weighted_f1"),
            "weighted F1 50.00 %, loss 0.2500")
      << "a secondary one, where it is what counts";
}

TEST(Metrics, OfUnknownNamesAreBetterWhenHigherUnlessTheyAreLosses) {
  EXPECT_TRUE(standard_metric("bleu").higher_is_better);
  EXPECT_FALSE(standard_metric("contrastive_loss").higher_is_better);
}

TEST(Metrics, WhatTheyAreIsReadBack) {
  const Metrics metrics = {{.name = "errors", .format = MetricFormat::wide_number, .secondary = true},
                           {.name = "bleu",
                            .higher_is_better = true,
                            .format = MetricFormat::percent,
                            .label = "BLEU",
                            .short_name = "b",
                            .description = "Overlap"}};
  const auto json = metric_kinds_to_json(metrics);
  EXPECT_EQ(metric_kinds_to_json(metric_kinds_from_json(json)), json);
  EXPECT_TRUE(metric_kinds_from_json(3).empty());
  EXPECT_TRUE(metric_kinds_from_json({1, {{"label", "x"}}, {{"name", 4}}}).empty());
}

TEST(Metrics, OfALineAreAllItsValidationKeys) {
  const auto line = nlohmann::ordered_json::parse(
      R"({"step": 3, "validation_loss": null, "validation_errors": 4, "validation_errors_interval": [3, 5]})");
  const Metrics metrics = metrics_of_line(line, {{.name = "errors", .higher_is_better = false, .label = "mistakes"}});
  ASSERT_EQ(std::distance(metrics.begin(), metrics.end()), 2);
  EXPECT_TRUE(std::isnan(metrics.value("loss")));
  EXPECT_EQ(metrics.find("errors")->title(), "mistakes");
  EXPECT_FALSE(metrics.find("errors")->higher_is_better);
  EXPECT_EQ(metrics.find("errors")->high, 5);
  EXPECT_TRUE(metrics_of_line({{"step", 3}, {"loss", 4}}, {}).empty());
}

}  // namespace
}  // namespace brisk
