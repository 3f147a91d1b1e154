// What the settings of a job do to the loss curve, and what they must not do to it.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <sstream>

#include "program/support/small_job.h"

namespace brisk::program {
namespace {

class Settings : public ::testing::Test {
 protected:
  Settings() { write_text(folder / "text.txt", english_like_text(100)); }

  std::vector<Json> train(const Json& job, const std::string& run) {
    train_small(folder, job, run);
    return curve_of(folder / run);
  }

  // Of every line, the largest difference of any number, relative to it.
  static double difference(const std::vector<Json>& a, const std::vector<Json>& b) {
    EXPECT_EQ(a.size(), b.size());
    double largest = 0;
    for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
      for (const auto& [key, value] : a[i].items()) {
        if (key.find("accuracy") != std::string::npos) continue;  // a count of near ties
        const double x = value, y = b[i].at(key);
        const double gap = std::abs(x - y) / std::max(1e-9, std::abs(x));
        if (!(gap <= largest)) largest = gap;
        if (std::isnan(gap)) return gap;
      }
    }
    return largest;
  }

  // As the line of memory has them: "... activations 1.23 MiB".
  static double activation_mebibytes(const Outcome& outcome) {
    const std::string row = " activations ";
    const size_t at = outcome.err.find(row);
    EXPECT_NE(at, std::string::npos) << outcome.err;
    std::istringstream words(outcome.err.substr(at + row.size(), 60));
    double amount = 0;
    std::string unit;
    words >> amount >> unit;
    return unit == "KiB" ? amount / 1024 : amount;
  }

  static Json job_with_dropout() {
    Json job = small_job();
    job["model"]["dropout"] = 0.1;
    job["training"]["batch_size"] = 32;
    job["training"]["max_steps"] = 10;
    job["training"]["eval_steps"] = 5;
    return job;
  }

  TemporaryFolder folder;
};

TEST_F(Settings, TheSameJobGivesTheSameBits) {
  const Json job = job_with_dropout();
  EXPECT_EQ(train(job, "one"), train(job, "two"));
  EXPECT_EQ(last_model_bytes(folder / "one"), last_model_bytes(folder / "two"));
  Json other = job;
  other["training"]["seed"] = 2;
  EXPECT_NE(train(other, "other"), curve_of(folder / "one"));
}

TEST_F(Settings, AccumulationEqualsTheLargerBatch) {
  Json job = job_with_dropout();
  const std::vector<Json> whole = train(job, "whole");
  job["training"]["batch_size"] = 8;
  job["training"]["micro_batch_tokens"] = 100;
  const std::vector<Json> smaller = train(job, "smaller");
  EXPECT_GT(difference(smaller, whole), 1e-3);  // a quarter of the batch is another curve
  job["training"]["gradient_accumulation_steps"] = 4;
  EXPECT_LT(difference(train(job, "accumulated"), whole), 1e-5);
}

TEST_F(Settings, MicroBatchesDoNotChangeTheResult) {
  Json job = job_with_dropout();
  const std::vector<Json> whole = train(job, "whole");
  for (const int64_t tokens : {32, 100}) {
    job["training"]["micro_batch_tokens"] = tokens;
    EXPECT_LT(difference(train(job, "divided" + std::to_string(tokens)), whole), 1e-5) << tokens;
  }
}

TEST_F(Settings, ThreadsAndLoaderThreadsDoNotChangeTheResult) {
  Json job = job_with_dropout();
  const std::vector<Json> one = train(job, "one");
  job["training"]["threads"] = 2;
  EXPECT_LT(difference(train(job, "two"), one), 1e-5);
  job["training"]["threads"] = 1;
  for (const int workers : {0, 3}) {
    job["training"]["num_workers"] = workers;
    EXPECT_EQ(train(job, "workers" + std::to_string(workers)), one);
  }
}

TEST_F(Settings, CheckpointedLayersDoNotChangeTheResult) {
  Json job = job_with_dropout();
  job["model"]["num_layers"] = 4;
  const Outcome plain = train_small(folder, job, "kept");
  const std::vector<Json> kept = curve_of(folder / "kept");
  for (const int every : {1, 2, 3}) {
    job["training"]["gradient_checkpointing"] = every;
    const std::string run = "checkpointed" + std::to_string(every);
    const Outcome outcome = train_small(folder, job, run);
    EXPECT_LT(difference(curve_of(folder / run), kept), 1e-6) << every;
    EXPECT_LT(activation_mebibytes(outcome), 0.9 * activation_mebibytes(plain)) << every;  // what it is for
  }
}

TEST_F(Settings, LlamaShapeTrainsToo) {
  Json job = job_with_dropout();
  job["model"] = {{"type", "llama"}, {"d_model", 32},     {"num_layers", 2},
                  {"num_heads", 4},  {"num_kv_heads", 2}, {"vocab_size", 320}};
  job["training"]["max_steps"] = 60;
  const std::vector<Json> lines = step_lines(train(job, "llama"));
  EXPECT_LT(lines.back()["loss"].get<double>(), 0.6 * lines.front()["loss"].get<double>());
  const Json saved = read_json(folder / "llama/job.json")["model"];
  EXPECT_EQ(saved["norm"], "rmsnorm");
  EXPECT_EQ(saved["positions"], "rotary");
  EXPECT_EQ(saved["activation"], "swiglu");
}

TEST_F(Settings, LabelSmoothingKeepsTheLossAboveItsFloor) {
  Json job = small_job();
  job["training"]["max_steps"] = 150;
  job["training"]["learning_rate"] = 1e-2;
  const double plain = step_lines(train(job, "plain")).back()["loss"];
  job["training"]["label_smoothing"] = 0.3;
  const double smoothed = step_lines(train(job, "smoothed")).back()["loss"];
  // No model does better than the entropy of the smoothed target: 0.7 on the token, 0.3 spread over all 320.
  const double share = 0.3 / 320, top = 0.7 + share;
  const double floor = -top * std::log(top) - 319 * share * std::log(share);
  EXPECT_GT(smoothed, floor);
  EXPECT_LT(smoothed, floor + plain + 0.5);
  EXPECT_LT(plain, floor);
}

TEST_F(Settings, StepsAndEpochsEndTheRunWhereTheySay) {
  Json job = small_job();
  job["training"].erase("max_steps");
  job["training"]["num_epochs"] = 2;
  job["data"]["validation_fraction"] = 0;
  const std::vector<Json> lines = train(job, "epochs");
  const int64_t steps = lines.back()["step"];
  EXPECT_EQ(steps % 2, 0);
  EXPECT_EQ(lines.back()["epoch"], 2);
  EXPECT_EQ(lines[static_cast<size_t>(steps / 2 - 1)]["epoch"], 1);
  EXPECT_EQ(lines[static_cast<size_t>(steps / 2)]["epoch"], 2);
  // Each epoch sees every token once.
  EXPECT_EQ(lines.back()["tokens"], 2 * lines[static_cast<size_t>(steps / 2 - 1)]["tokens"].get<int64_t>());
  EXPECT_TRUE(evaluation_lines(lines).empty());
  job["training"]["max_steps"] = steps + 1;  // and overrides num_epochs
  EXPECT_EQ(train(job, "steps").back()["step"], steps + 1);
}

TEST_F(Settings, KeepsAsManyCheckpointsAsAsked) {
  Json job = small_job();
  job["training"]["save_steps"] = 6;
  job["training"]["save_total_limit"] = 0;
  train(job, "all");
  EXPECT_EQ(checkpoints_of(folder / "all").size(), 5U);
  job["training"]["save_total_limit"] = 1;
  train(job, "one");
  EXPECT_EQ(checkpoints_of(folder / "one"), std::vector<std::string>{"step-00000030"});
}

TEST_F(Settings, TheBestModelIsKeptAndUsed) {
  // Nothing like the text to learn from: the better that is known, the less likely this is.
  write_text(folder / "held-out.txt", "xqzzj 8812 #+; QJ%%\n~~^|<> 77 zzxq\n");
  Json job = small_job();
  job["data"]["validation"] = "held-out.txt";
  job["training"]["learning_rate"] = 0.01;
  job["training"]["max_steps"] = 100;
  job["training"]["eval_steps"] = 10;
  job["training"]["save_total_limit"] = 1;
  train(job, "run");
  const Json summary = read_json(folder / "run/summary.json");
  ASSERT_LT(summary["best"]["step"], 100);
  EXPECT_EQ(checkpoints_of(folder / "run").size(), 2U);
  const Outcome outcome = run_brisk({"eval", "run", "--data", "held-out.txt", "--json"}, folder);
  EXPECT_NEAR(Json::parse(outcome.out)["loss"].get<double>(), summary["best"]["validation_loss"].get<double>(), 1e-5);
  EXPECT_GT(summary["validation_loss"], summary["best"]["validation_loss"]);
}

TEST_F(Settings, SamplesTextAfterEachEpoch) {
  write_job(folder, small_job());
  const Outcome outcome = run_brisk(
      {"train", "job.json", "--output", "run", "--sample-tokens", "8", "--sample-prompt", "The queen"}, folder);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("sample: The queen"), std::string::npos) << outcome.err;
}

TEST_F(Settings, ThatDivergeEndWithTheStepTheTensorAndAdvice) {
  Json job = small_job();
  job["training"]["learning_rate"] = 10;
  job["training"]["weight_decay"] = 10;  // each step multiplies the weights by -99
  job["training"]["lr_scheduler"] = "constant";
  job["training"]["warmup_steps"] = 0;
  job["training"]["max_grad_norm"] = 0;
  job["training"]["max_steps"] = 200;
  job["training"]["save_steps"] = 2;
  write_job(folder, job);
  const Outcome outcome = run_brisk({"train", "job.json", "--output", "run"}, folder);
  EXPECT_EQ(outcome.exit_code, 2) << outcome.err;
  const size_t message = outcome.err.find("brisk: step ");
  ASSERT_NE(message, std::string::npos) << outcome.err;
  for (const char* part : {"not finite", "first in ", "training.learning_rate (now 10)", "training.max_grad_norm",
                           "the last checkpoint is run/checkpoints/step-"}) {
    EXPECT_NE(outcome.err.find(part, message), std::string::npos) << part << "\n" << outcome.err.substr(message);
  }
}

}  // namespace
}  // namespace brisk::program
