#include "train/record/metrics_log.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cmath>
#include <csignal>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "support/broken_system.h"
#include "support/scratch_folder.h"

namespace brisk {
namespace {

using nlohmann::json;
using test::contents_of;
using test::ScratchFolder;

EvaluationMetrics evaluation(int64_t step, int64_t epoch, double loss) {
  return {step, epoch, {standard_metric("loss", loss), standard_metric("accuracy", 0.25)}, 12.5};
}

StepMetrics step_metrics(int64_t step) {
  return {.step = step,
          .epoch = 1,
          .tokens = 4096 * step,
          .metrics = {standard_metric("loss", 1.0 / 3.0), standard_metric("accuracy", 0.1 + 0.2)},
          .learning_rate = 1e-3,
          .gradient_norm = 5.0,
          .tokens_per_second = 12345.678,
          .step_ms = 1e22};
}

std::vector<json> lines_of(const std::string& path) {
  std::vector<json> lines;
  std::istringstream text(contents_of(path));
  for (std::string line; std::getline(text, line);) lines.push_back(json::parse(line));
  return lines;
}

TEST(MetricsLog, ALoggedStepHasExactlyTheseKeys) {
  const json line = json::parse(to_json_line(step_metrics(3)));
  std::vector<std::string> keys;
  for (const auto& [key, value] : line.items()) keys.push_back(key);
  EXPECT_EQ(keys,
            (std::vector<std::string>{"accuracy", "epoch", "gradient_norm", "learning_rate", "loss", "rollbacks",
                                      "seconds", "skipped_updates", "step", "step_ms", "tokens", "tokens_per_second"}));
  EXPECT_EQ(line["step"], 3);
  EXPECT_EQ(line["tokens"], 3 * 4096);
  EXPECT_TRUE(line["gradient_norm"].is_number_float()) << "a whole number stays a float";
}

TEST(MetricsLog, AStepOnAGpuSaysWhatTheGpuTells) {
  StepMetrics metrics = step_metrics(3);
  metrics.gpu = GpuReading{.busy_share = 0.97, .watts = 612.5, .celsius = 64, .memory_used_bytes = int64_t{3} << 40};
  const json line = json::parse(to_json_line(metrics));
  EXPECT_EQ(line["gpu_busy_share"], 0.97);
  EXPECT_EQ(line["gpu_watts"], 612.5);
  EXPECT_EQ(line["gpu_celsius"], 64);
  EXPECT_EQ(line["gpu_memory_used_bytes"], int64_t{3} << 40);
  EXPECT_FALSE(line.contains("gpu_sm_mhz")) << "what it does not tell";
}

TEST(MetricsLog, AStepOfSeveralRanksSaysWhatAllTheirGpusTell) {
  StepMetrics metrics = step_metrics(3);
  EXPECT_FALSE(json::parse(to_json_line(metrics)).contains("gpus"));
  metrics.gpu = GpuReading{.busy_share = 0.97};
  metrics.gpus = {*metrics.gpu, GpuReading{.celsius = 64, .memory_used_bytes = 5}, GpuReading{}};
  const json line = json::parse(to_json_line(metrics));
  EXPECT_EQ(line["gpu_busy_share"], 0.97);
  EXPECT_EQ(line["gpus"],
            (json{{{"busy_share", 0.97}}, {{"celsius", 64.0}, {"memory_used_bytes", 5}}, json::object()}));
}

TEST(MetricsLog, TheSummaryHasTheGpuOfEveryRank) {
  RunSummary summary;
  summary.ranks.push_back({.peak_memory_bytes = 100, .gpu = GpuSummary{.readings = 7, .mean_busy_share = 0.9}});
  summary.ranks.push_back({.peak_memory_bytes = 200});
  const json text = json::parse(summary_to_json_text(summary));
  EXPECT_EQ(text["ranks"][0]["gpu"], (json{{"mean_busy_share", 0.9}, {"readings", 7}}));
  EXPECT_FALSE(text["ranks"][1].contains("gpu"));
}

TEST(MetricsLog, TheSummaryOfARunOnAGpuHasItsMeansAndEnergy) {
  RunSummary summary;
  summary.gpu = GpuSummary{.readings = 7, .mean_busy_share = 0.9, .max_watts = 650, .joules = 1200};
  summary.tokens_per_joule = 2500;
  summary.peak_allocated_bytes = 5;
  summary.first_step_seconds = 2.5;
  const json text = json::parse(summary_to_json_text(summary));
  EXPECT_EQ(text["gpu"], (json{{"mean_busy_share", 0.9},
                               {"max_watts", 650.0},
                               {"joules", 1200.0},
                               {"readings", 7},
                               {"tokens_per_joule", 2500.0}}));
  EXPECT_EQ(text["peak_allocated_bytes"], 5);
  EXPECT_EQ(text["first_step_seconds"], 2.5);
  EXPECT_FALSE(json::parse(summary_to_json_text(RunSummary{})).contains("gpu"));
}

TEST(MetricsLog, AnEvaluationHasAKeyForEachOfItsMetrics) {
  EvaluationMetrics metrics = evaluation(7, 2, 1.5);
  EXPECT_EQ(to_json_line(metrics),
            R"({"step": 7, "epoch": 2, "validation_loss": 1.5, "validation_accuracy": 0.25, "seconds": 12.5})");
  metrics.metrics = {{.name = "bleu", .value = 0.5, .low = 0.25, .high = 0.75}};
  EXPECT_EQ(
      to_json_line(metrics),
      R"({"step": 7, "epoch": 2, "validation_bleu": 0.5, "validation_bleu_interval": [0.25, 0.75], "seconds": 12.5})");
}

TEST(MetricsLog, EveryNumberIsReadBackToTheBit) {
  double value = 0.1;
  for (int i = 0; i < 2000; ++i) {
    value = std::nextafter(value * (i % 7 == 0 ? 1e-17 : 1.37), 2.0);
    StepMetrics metrics;
    metrics.metrics = {standard_metric("loss", i % 2 == 0 ? value : -value)};
    metrics.step_ms = static_cast<double>(static_cast<float>(value));
    const json line = json::parse(to_json_line(metrics));
    ASSERT_EQ(line["loss"].get<double>(), metrics.loss());
    ASSERT_EQ(line["step_ms"].get<double>(), metrics.step_ms);
  }
}

TEST(MetricsLog, MetricsOfAStepAreReadBackByTheNamesThatTheRunHas) {
  const ScratchFolder folder;
  const std::string path = folder / "metrics.jsonl";
  const Metric kind{.name = "solved", .higher_is_better = true, .format = MetricFormat::percent};
  Metric solved = kind;
  solved.value = 0.25;
  {
    MetricsLog log(path);
    log.append(StepMetrics{.step = 4, .metrics = {standard_metric("loss", 3), solved}});
  }
  RunSummary summary;
  recall_metrics(path, {standard_metric("loss"), kind}, 0, summary);
  EXPECT_EQ(summary.last_step->loss(), 3);
  EXPECT_EQ(summary.last_step->metrics.value("solved"), 0.25);
  EXPECT_EQ(to_json_line(*summary.last_step),
            to_json_line(StepMetrics{.step = 4, .metrics = {standard_metric("loss", 3), solved}}));
}

TEST(MetricsLog, WhatIsNotFiniteIsNull) {
  StepMetrics metrics;
  metrics.metrics = {standard_metric("loss")};
  metrics.gradient_norm = std::numeric_limits<double>::infinity();
  const json line = json::parse(to_json_line(metrics));
  EXPECT_TRUE(line["loss"].is_null());
  EXPECT_TRUE(line["gradient_norm"].is_null());
}

TEST(MetricsLog, LinesAreInTheFileAtOnceAndAreAppended) {
  const ScratchFolder folder;
  const std::string path = folder / "metrics.jsonl";
  {
    MetricsLog log(path);
    log.append(step_metrics(1));
    EXPECT_EQ(lines_of(path).size(), 1u);
    log.append(evaluation(1, 1, 2.0));
    log.sync();
    EXPECT_EQ(log.problem(), "");
  }
  MetricsLog log(path);
  log.append(step_metrics(2));
  const std::vector<json> lines = lines_of(path);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0]["loss"].get<double>(), 1.0 / 3.0);
  EXPECT_EQ(lines[1]["validation_loss"], 2.0);
  EXPECT_EQ(lines[2]["step"], 2);
}

TEST(MetricsLog, AFullDiskNeitherStopsTrainingNorTearsALine) {
  const ScratchFolder folder;
  BRISK_EXPECT_CHILD_PASSES([&] {
    std::signal(SIGXFSZ, SIG_IGN);
    const std::string path = folder / "metrics.jsonl";
    MetricsLog log(path);
    log.append(step_metrics(1));
    const rlim_t line_bytes = contents_of(path).size();
    rlimit limit{};
    getrlimit(RLIMIT_FSIZE, &limit);
    const rlim_t unlimited = limit.rlim_cur;
    limit.rlim_cur = 2 * line_bytes + line_bytes / 2;  // room for two lines and a half
    setrlimit(RLIMIT_FSIZE, &limit);
    for (int64_t step = 2; step <= 4; ++step) log.append(step_metrics(step));
    EXPECT_EQ(lines_of(path).size(), 2u) << "whole lines only";
    EXPECT_NE(log.problem().find(path), std::string::npos);

    limit.rlim_cur = unlimited;
    setrlimit(RLIMIT_FSIZE, &limit);
    log.append(step_metrics(5));
    EXPECT_EQ(log.problem(), "");
    const std::vector<json> lines = lines_of(path);
    EXPECT_EQ(lines.size(), 5u);
    for (size_t i = 0; i < lines.size(); ++i) EXPECT_EQ(lines[i]["step"], i + 1);
  });
}

TEST(MetricsLog, AFileThatCannotBeOpenedIsAUserError) {
  const ScratchFolder folder;
  const std::string path = folder / "missing/metrics.jsonl";
  EXPECT_NE(test::message_of<UserError>([&] { MetricsLog log(path); }).find(path), std::string::npos);
}

RunSummary run_summary() {
  RunSummary summary;
  summary.last_step = step_metrics(20);
  summary.last_evaluation = evaluation(18, 3, 2.25);
  summary.best_evaluation = evaluation(12, 2, 2.0);
  summary.best_by = "loss";
  summary.parameters = 1000;
  summary.model_bytes = 4000;
  summary.ledger = {{"forward_linear", 1.5}, {"other", 0.25}};
  summary.wall_seconds = 1.75;
  summary.utilisation = 0.75;
  summary.peak_memory_bytes = 123456789;
  return summary;
}

TEST(RunSummary, HasTheLastOfEachAndTheFactsOfTheRun) {
  const ScratchFolder folder;
  write_summary(folder / "summary.json", run_summary());
  const json summary = json::parse(contents_of(folder / "summary.json"));
  EXPECT_EQ(summary["step"], 20);
  EXPECT_EQ(summary["epoch"], 1);
  EXPECT_EQ(summary["loss"].get<double>(), 1.0 / 3.0);
  EXPECT_EQ(summary["validation_loss"], 2.25);
  EXPECT_EQ(summary["best"]["validation_loss"], 2.0);
  EXPECT_EQ(summary["best"]["step"], 12);
  EXPECT_EQ(summary["best_by"], "loss");
  EXPECT_EQ(summary["parameters"], 1000);
  EXPECT_EQ(summary["model_bytes"], 4000);
  EXPECT_EQ(summary["ledger"], (json{{"forward_linear", 1.5}, {"other", 0.25}}));
  EXPECT_EQ(summary["wall_seconds"], 1.75);
  EXPECT_EQ(summary["utilisation"], 0.75);
  EXPECT_EQ(summary["peak_memory_bytes"], 123456789);
}

TEST(RunSummary, TheStepIsThatOfTheLaterLine) {
  RunSummary summary = run_summary();
  summary.last_evaluation->step = 21;
  const json text = json::parse(summary_to_json_text(summary));
  EXPECT_EQ(text["step"], 21);
  EXPECT_EQ(text["epoch"], 3);
}

TEST(RunSummary, ARunThatNeverLoggedHasNoLoss) {
  const json summary = json::parse(summary_to_json_text({}));
  EXPECT_FALSE(summary.contains("loss"));
  EXPECT_FALSE(summary.contains("validation_loss"));
  EXPECT_EQ(summary["parameters"], 0);
}

}  // namespace
}  // namespace brisk
