// Several processes that train one model: the same curve within rounding for any number of them, the same bits with
// training.logical_ranks, and checkpoints that know nothing of the number. Ranks are threads here, each with a runtime of its own.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "base/runtime.h"
#include "comm/shared_memory.h"
#include "job/job.h"
#include "support/sample_text.h"
#include "support/scratch_folder.h"
#include "support/silent_log.h"
#include "train/engine/process_group.h"
#include "train/run/trainer.h"

namespace brisk {
namespace {

using Json = nlohmann::json;

std::string table_of_sentences() {
  std::string table = "text,label\n";
  for (int i = 0; i < 90; ++i) {
    std::string text = i % 3 == 0 ? "good" : "bad";
    for (int word = 0; word < 2 + i % 11; ++word) text += " word" + std::to_string((i * 7 + word * 3) % 23);
    table += text + "," + (i % 3 == 0 ? "yes" : "no") + "\n";
  }
  return table;
}

class RanksOfTraining : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_.write("text.txt", testing::prose(6000, 7));
    folder_.write("table.csv", table_of_sentences());
  }

  static Json decoder() {
    return Json::parse(R"({"device": "cpu",
      "model": {"d_model": 32, "num_layers": 2, "num_heads": 2, "vocab_size": 300, "dropout": 0.1},
      "training": {"batch_size": 9, "max_length": 24, "max_steps": 12, "logging_steps": 1, "eval_steps": 5, "save_steps": 6,
                   "precision": "fp32", "seed": 3, "learning_rate": 0.01, "micro_batch_tokens": 64}})");
  }
  Json encoder(const std::string& task) const {
    Json job = Json::parse(R"({"device": "cpu",
      "model": {"type": "bert", "d_model": 32, "num_layers": 2, "num_heads": 2, "vocab_size": 120},
      "training": {"batch_size": 7, "max_length": 24, "max_steps": 8, "logging_steps": 1, "eval_steps": 4, "save_steps": 4,
                   "precision": "fp32", "seed": 3, "learning_rate": 0.003}})");
    job["task"] = task;
    job["data"]["train"] = folder_ / "table.csv";
    return job;
  }

  // What each rank threw; empty: nothing.
  std::vector<std::string> train_on(int ranks, Json json, const std::string& output, bool resume = false) const {
    json["data"]["cache_dir"] = folder_ / "cache";
    if (!json["data"].contains("train")) json["data"]["train"] = folder_ / "text.txt";
    json["output"] = folder_ / output;
    auto group = make_thread_group(ranks);
    std::vector<std::string> errors(static_cast<size_t>(ranks));
    std::vector<std::thread> threads;
    for (int rank = 0; rank < ranks; ++rank) {
      threads.emplace_back([&, rank] {
        Runtime runtime({.threads = 1, .log = std::make_shared<test::SilentLog>()});
        const RuntimeScope scope(runtime);
        ConnectedProcesses processes(*group[static_cast<size_t>(rank)], ranks);
        try {
          Job job = job_from_json_text(json.dump(), "job.json");
          resolve_defaults(job);
          train(job, {.resume = resume, .processes = ranks > 1 ? &processes : nullptr});
        } catch (const std::exception& error) {
          errors[static_cast<size_t>(rank)] = error.what();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    return errors;
  }

  void expect_trained(int ranks, const Json& job, const std::string& output, bool resume = false) const {
    for (const std::string& error : train_on(ranks, job, output, resume)) ASSERT_EQ(error, "");
  }

  std::vector<Json> lines_of(const std::string& output) const {
    std::vector<Json> all;
    std::istringstream lines(test::contents_of(folder_ / output + "/metrics.jsonl"));
    for (std::string line; std::getline(lines, line);) {
      Json json = Json::parse(line);
      for (const char* key : {"seconds", "tokens_per_second", "step_ms"}) json.erase(key);
      all.push_back(std::move(json));
    }
    return all;
  }

  std::string weights_of(const std::string& output) const {
    std::string last;
    for (const auto& entry : std::filesystem::directory_iterator(folder_ / output + "/checkpoints"))
      last = std::max(last, entry.path().string());
    return test::contents_of(last + "/model.safetensors") + test::contents_of(last + "/optimizer.safetensors");
  }

  void expect_same_curve(const std::string& output, const std::string& reference, double tolerance) const {
    const std::vector<Json> curve = lines_of(output), expected = lines_of(reference);
    ASSERT_EQ(curve.size(), expected.size());
    for (size_t i = 0; i < curve.size(); ++i) {
      for (const auto& [key, value] : expected[i].items()) {
        ASSERT_TRUE(curve[i].contains(key)) << key;
        if (!value.is_number()) continue;
        const double a = value, b = curve[i][key];
        EXPECT_NEAR(b, a, tolerance * (1 + std::abs(a))) << key << " of line " << i;
      }
    }
  }

  const test::ScratchFolder folder_;
};

TEST_F(RanksOfTraining, HaveTheCurveOfOneProcess) {
  Json job = decoder();
  for (const char* optimizer : {"muon", "adamw"}) {
    job["training"]["optimizer"] = optimizer;
    const std::string name = optimizer;
    expect_trained(1, job, name + "1");
    for (const int ranks : {2, 3, 4}) {
      expect_trained(ranks, job, name + std::to_string(ranks));
      expect_same_curve(name + std::to_string(ranks), name + "1", 2e-4);
    }
  }
}

TEST_F(RanksOfTraining, ThatAreMoreThanTheSequencesOfAStepHaveItToo) {
  Json job = decoder();
  job["training"]["batch_size"] = 2;
  job["training"]["gradient_accumulation_steps"] = 1;
  expect_trained(1, job, "one");
  expect_trained(4, job, "four");
  expect_same_curve("four", "one", 2e-4);
}

TEST_F(RanksOfTraining, OfEveryTaskHaveTheSameCurve) {
  for (const char* task : {"classify", "mlm"}) {
    expect_trained(1, encoder(task), std::string(task) + "1");
    expect_trained(3, encoder(task), std::string(task) + "3");
    expect_same_curve(std::string(task) + "3", std::string(task) + "1", 2e-4);
  }
}

TEST_F(RanksOfTraining, WithLogicalRanksHaveTheSameBitsForAnyNumber) {
  for (const char* precision : {"fp32", "bf16"}) {
    Json job = decoder();
    job["training"]["logical_ranks"] = 4;
    job["training"]["precision"] = precision;
    const std::string name = precision;
    for (const int ranks : {1, 2, 4}) expect_trained(ranks, job, name + std::to_string(ranks));
    for (const int ranks : {2, 4}) {
      EXPECT_EQ(lines_of(name + std::to_string(ranks)), lines_of(name + "1")) << ranks << " ranks";
      EXPECT_EQ(weights_of(name + std::to_string(ranks)), weights_of(name + "1")) << ranks << " ranks";
    }
  }
}

TEST_F(RanksOfTraining, OfAClassifierWithLogicalRanksHaveTheSameBits) {
  Json job = encoder("classify");
  job["training"]["logical_ranks"] = 4;
  job["training"]["class_weights"] = "balanced";
  expect_trained(1, job, "one");
  expect_trained(4, job, "four");
  EXPECT_EQ(lines_of("four"), lines_of("one"));
  EXPECT_EQ(weights_of("four"), weights_of("one"));
}

TEST_F(RanksOfTraining, GoOnWithAnyOtherNumberOfThem) {
  Json job = decoder(), longer = decoder();
  job["training"]["logical_ranks"] = longer["training"]["logical_ranks"] = 4;
  job["training"]["lr_scheduler"] = longer["training"]["lr_scheduler"] = "constant";
  job["training"]["max_steps"] = 6;
  expect_trained(1, longer, "whole");
  for (const int before : {1, 2, 4}) {
    for (const int after : {1, 2, 4}) {
      const std::string name = std::to_string(before) + std::to_string(after);
      expect_trained(before, job, name);
      expect_trained(after, longer, name, true);
      EXPECT_EQ(weights_of(name), weights_of("whole")) << before << " ranks, then " << after;
    }
  }
}

TEST_F(RanksOfTraining, AreRefusedWhereLogicalRanksAreNoMultipleOfThem) {
  Json job = decoder();
  job["training"]["logical_ranks"] = 4;
  const std::vector<std::string> errors = train_on(3, job, "run");
  EXPECT_NE(errors[0].find("training.logical_ranks is 4: it is not a multiple of the 3 ranks"), std::string::npos)
      << errors[0];
  EXPECT_FALSE(std::filesystem::exists(folder_ / "run"));
  job["training"]["logical_ranks"] = 6;
  EXPECT_NE(train_on(1, job, "run")[0].find("must be a power of two"), std::string::npos);
}

}  // namespace
}  // namespace brisk
