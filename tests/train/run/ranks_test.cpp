// Several processes that train one model: the same curve within rounding for any number of them, the same bits with
// training.logical_ranks, and checkpoints that know nothing of the number. Ranks are threads here, each with a runtime of its own.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/runtime.h"
#include "comm/shared_memory.h"
#include "job/job.h"
#include "support/sample_text.h"
#include "support/scratch_folder.h"
#include "support/silent_log.h"
#include "train/engine/process_group.h"
#include "train/run/checkpoint_saver.h"
#include "train/run/rank_watch.h"
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

  // What each rank threw; empty: nothing. `change` is called with the request of each.
  using Change = std::function<void(int rank, TrainRequest& request)>;
  std::vector<std::string> train_on(int ranks, Json json, const std::string& output, bool resume = false,
                                    const Change& change = {}) const {
    json["data"]["cache_dir"] = folder_ / "cache";
    if (!json["data"].contains("train")) json["data"]["train"] = folder_ / "text.txt";
    json["output"] = folder_ / output;
    auto group = make_thread_group(ranks);
    std::vector<std::string> errors(static_cast<size_t>(ranks));
    std::vector<std::thread> threads;
    for (int rank = 0; rank < ranks; ++rank) {
      threads.emplace_back([&, rank] {
        std::shared_ptr<LogSink> log = std::make_shared<test::SilentLog>();
        if (rank == 0 && log_) log = log_;
        Environment environment = environment_;
        environment["BRISK_NCCL_LIBRARY"] = BRISK_FAKE_NCCL;
        if (rank < std::ssize(buckets_)) environment["BRISK_BUCKET_BYTES"] = buckets_[static_cast<size_t>(rank)];
        Runtime runtime({.threads = 1, .environment = environment, .log = log});
        runtime.set_quiet(rank > 0);
        const RuntimeScope scope(runtime);
        ConnectedProcesses processes(*group[static_cast<size_t>(rank)], ranks);
        try {
          if (over_nccl_) processes.connect_gpus();
          Job job = job_from_json_text(json.dump(), "job.json");
          resolve_defaults(job);
          TrainRequest request{.resume = resume, .processes = ranks > 1 || over_nccl_ ? &processes : nullptr};
          if (change) change(rank, request);
          train(job, request);
        } catch (const std::exception& error) {
          errors[static_cast<size_t>(rank)] = error.what();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    return errors;
  }

  void expect_trained(int ranks, const Json& job, const std::string& output, bool resume = false,
                      const Change& change = {}) const {
    for (const std::string& error : train_on(ranks, job, output, resume, change)) ASSERT_EQ(error, "");
  }

  Json summary_of(const std::string& output) const {
    return Json::parse(test::contents_of(folder_ / output + "/summary.json"));
  }
  std::vector<std::string> checkpoints_of(const std::string& output) const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_ / output + "/checkpoints"))
      names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
  }

  std::vector<Json> lines_of(const std::string& output) const {
    std::vector<Json> all;
    std::istringstream lines(test::contents_of(folder_ / output + "/metrics.jsonl"));
    for (std::string line; std::getline(lines, line);) {
      Json json = Json::parse(line);
      for (const char* key : {"seconds", "tokens_per_second", "step_ms", "communication_ms", "hidden_communication_ms"})
        json.erase(key);
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
  Environment environment_ = process_environment();
  std::vector<std::string> buckets_;  // of the first ranks: BRISK_BUCKET_BYTES
  std::shared_ptr<LogSink> log_;      // of rank 0
  // Gradients, numbers and weights go through what connects GPUs (train/engine/shard_transport.h), from and to the CPU's memory
  // and through a library of our own (tests/fake_nccl).
  bool over_nccl_ = false;
};

// What rank 0 warned of.
class Warnings final : public LogSink {
 public:
  void line(LogLevel level, std::string_view text) override {
    const std::lock_guard lock(mutex_);
    if (level == LogLevel::warning) all.emplace_back(text);
  }
  std::vector<std::string> all;

 private:
  std::mutex mutex_;
};

// A clock that runs faster than the system's.
class FastClock final : public Clock {
 public:
  explicit FastClock(int64_t times) : times_(times) {}
  int64_t nanoseconds() const override { return start_ + times_ * (kSystemClock.nanoseconds() - start_); }

 private:
  int64_t times_;
  int64_t start_ = kSystemClock.nanoseconds();
};

class RanksOverNccl : public RanksOfTraining {
 protected:
  void expect_same_as_alone(const Json& job, const std::string& name, double tolerance) {
    over_nccl_ = false;
    expect_trained(1, job, name + "-alone");
    over_nccl_ = true;
    for (const int ranks : {1, 2, 3}) {
      expect_trained(ranks, job, name + std::to_string(ranks));
      expect_same_curve(name + std::to_string(ranks), name + "-alone", tolerance);
    }
  }
};

TEST_F(RanksOverNccl, HaveTheCurveOfOneProcess) {
  for (const char* optimizer : {"muon", "adamw"}) {
    Json job = decoder();
    job["training"]["optimizer"] = optimizer;
    expect_same_as_alone(job, optimizer, 2e-4);
  }
}

TEST_F(RanksOverNccl, ThatAreMoreThanTheSequencesOfAStepHaveItToo) {
  Json job = decoder();
  job["training"]["batch_size"] = 2;
  job["training"]["gradient_accumulation_steps"] = 1;
  expect_same_as_alone(job, "few", 2e-4);
}

TEST_F(RanksOverNccl, OfEveryTaskHaveTheSameCurve) {
  for (const char* task : {"classify", "mlm"}) expect_same_as_alone(encoder(task), task, 2e-4);
}

TEST_F(RanksOverNccl, WithLogicalRanksHaveTheBitsOfRanksOnCpus) {
  for (const char* precision : {"fp32", "bf16"}) {
    Json job = decoder();
    job["training"]["logical_ranks"] = 4;
    job["training"]["precision"] = precision;
    const std::string name = precision;
    over_nccl_ = false;
    expect_trained(1, job, name);
    over_nccl_ = true;
    for (const int ranks : {1, 2, 4}) {
      expect_trained(ranks, job, name + std::to_string(ranks));
      EXPECT_EQ(lines_of(name + std::to_string(ranks)), lines_of(name)) << ranks << " ranks";
      EXPECT_EQ(weights_of(name + std::to_string(ranks)), weights_of(name)) << ranks << " ranks";
    }
  }
}

TEST_F(RanksOverNccl, GoOnWithAnyOtherNumberOfThem) {
  Json job = decoder(), longer = decoder();
  job["training"]["logical_ranks"] = longer["training"]["logical_ranks"] = 4;
  job["training"]["lr_scheduler"] = longer["training"]["lr_scheduler"] = "constant";
  job["training"]["max_steps"] = 6;
  over_nccl_ = true;
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

// Gradients that leave during backward, in buckets that cut parameters anywhere, or in more than fit into the model.
TEST_F(RanksOfTraining, HaveTheSameBitsWithAndWithoutOverlap) {
  struct Case {
    std::string name;
    int ranks = 2;
    int64_t logical_ranks = 0, batch_size = 9;
    std::string precision = "fp32", optimizer = "muon";
  };
  const std::vector<Case> cases = {
      {.name = "two"},
      {.name = "three", .ranks = 3, .optimizer = "adamw"},
      {.name = "parts", .ranks = 2, .logical_ranks = 8},
      {.name = "rounded", .ranks = 4, .logical_ranks = 4, .precision = "bf16"},
      {.name = "empty", .ranks = 4, .batch_size = 2},                            // ranks without sequences
      {.name = "empty_parts", .ranks = 2, .logical_ranks = 8, .batch_size = 3},  // a rank whose last part has none
  };
  for (const Case& test : cases) {
    Json job = decoder();
    job["training"]["batch_size"] = test.batch_size;
    job["training"]["precision"] = test.precision;
    job["training"]["optimizer"] = test.optimizer;
    if (test.logical_ranks > 0) job["training"]["logical_ranks"] = test.logical_ranks;
    environment_["BRISK_BUCKET_BYTES"] = "0";
    expect_trained(test.ranks, job, test.name + "_after");
    for (const char* bytes : {"1000", "20000", "100000000"}) {
      environment_["BRISK_BUCKET_BYTES"] = bytes;
      const std::string output = test.name + bytes;
      expect_trained(test.ranks, job, output);
      EXPECT_EQ(lines_of(output), lines_of(test.name + "_after")) << output;
      EXPECT_TRUE(weights_of(output) == weights_of(test.name + "_after")) << output;
      for (int rank = 0; rank < test.ranks; ++rank) {
        const auto place = static_cast<size_t>(rank);
        const Json figures = summary_of(output)["ranks"][place],
                   after = summary_of(test.name + "_after")["ranks"][place];
        EXPECT_GT(figures["bytes_sent"], 0);
        const double sent = after["bytes_sent"];  // besides what the end of a save in the background takes
        EXPECT_NEAR(figures["bytes_sent"], sent, 1e-3 * sent) << output;
        EXPECT_GT(figures["work_seconds"], 0);
        EXPECT_GE(figures["hidden_communication_seconds"], 0);
        EXPECT_EQ(after["hidden_communication_seconds"], 0);
      }
    }
  }
}

// As where the variable is set on one machine alone.
TEST_F(RanksOfTraining, CutTheGradientAtTheSamePlacesWhateverEachIsTold) {
  const Json job = decoder();
  expect_trained(2, job, "after");
  for (const std::vector<std::string>& told : {std::vector<std::string>{"1000", "20000"}, {"20000", "0"}}) {
    buckets_ = told;
    expect_trained(2, job, "apart" + told[0]);
    EXPECT_TRUE(weights_of("apart" + told[0]) == weights_of("after")) << told[0];
  }
  buckets_ = {"0", "4MB"};
  const std::vector<std::string> errors = train_on(2, job, "refused");
  EXPECT_NE(errors[1].find("BRISK_BUCKET_BYTES is \"4MB\", expected a number of bytes"), std::string::npos)
      << errors[1];
  EXPECT_NE(errors[0].find("rank 1"), std::string::npos) << errors[0];
}

// A rank that throws while its gradients are on their way ends the others with its reason.
TEST_F(RanksOfTraining, EndWithTheReasonOfTheRankThatFails) {
  environment_["BRISK_BUCKET_BYTES"] = "1000";
  struct Thrower final : RunObserver {
    void after_step() override {
      if (++steps == 3) throw UserError("the battery is flat");
    }
    int steps = 0;
  } thrower;
  const std::vector<std::string> errors = train_on(3, decoder(), "run", false, [&](int rank, TrainRequest& request) {
    if (rank == 1) request.observer = &thrower;
  });
  EXPECT_EQ(errors[1], "the battery is flat");
  for (const size_t rank : {0, 2}) EXPECT_NE(errors[rank].find("rank 1"), std::string::npos) << errors[rank];
}

TEST_F(RanksOfTraining, SaveNothingWhereOneOfThemCannot) {
  Json job = decoder();
  const auto warnings = std::make_shared<Warnings>();
  log_ = warnings;
  expect_trained(3, job, "run", false, [](int rank, TrainRequest& request) {
    if (rank != 2) return;
    request.write_checkpoint = [](const std::string&, const CheckpointTensors&, const CheckpointState& state) {
      SaveResult result;
      if (state.step == 6) result.problem = "no space left on device";
      return result;
    };
  });
  const auto told = [](const std::string& text) {
    return text.find("the checkpoint of step 6 was not saved: rank 2: no space left on device") != std::string::npos;
  };
  EXPECT_EQ(std::count_if(warnings->all.begin(), warnings->all.end(), told), 1);
  const std::vector<std::string> names = checkpoints_of("run");
  EXPECT_EQ(std::count(names.begin(), names.end(), "step-00000006"), 0);
  EXPECT_EQ(names.back(), "step-00000012");
  for (const std::string& name : names) EXPECT_NE(name.front(), '.') << name;
}

TEST_F(RanksOfTraining, GoBackTogetherWhereTrainingDiverges) {
  Json job = decoder();
  const Json changes = Json::parse(R"({"max_steps": 80, "save_steps": 10, "learning_rate": 1, "max_grad_norm": 0,
      "lr_scheduler": "constant", "logical_ranks": 2, "eval_steps": 40})");
  for (const auto& [key, value] : changes.items()) job["training"][key] = value;
  expect_trained(1, job, "one");
  ASSERT_GT(summary_of("one")["rollbacks"], 0);
  expect_trained(2, job, "two");
  EXPECT_EQ(summary_of("two")["rollbacks"], summary_of("one")["rollbacks"]);
  EXPECT_EQ(lines_of("two"), lines_of("one"));
  EXPECT_TRUE(weights_of("two") == weights_of("one"));
}

TEST_F(RanksOfTraining, EndOnTimeTogether) {
  Json job = decoder();
  job["training"].erase("max_steps");
  job["training"]["stop"] = "1s";
  job["training"]["save_minutes"] = 0.002;
  expect_trained(3, job, "run");
  const Json summary = summary_of("run");
  EXPECT_EQ(summary["ended"], "finished");
  EXPECT_EQ(summary["world_size"], 3);
  EXPECT_GE(summary["step"], 1);  // how many more, is the machine's to say
}

// Whoever asks for histograms sees the whole gradient and all weights, whichever rank has them.
TEST_F(RanksOfTraining, ShowTheHistogramsOfOneProcess) {
  // Records that begin with a time, of histograms alone.
  const auto histograms = [&](const std::string& output) {
    std::vector<std::string> all;
    for (const auto& entry : std::filesystem::directory_iterator(folder_ / output + "/tensorboard")) {
      const std::string bytes = test::contents_of(entry.path().string());
      for (size_t at = 0; at + 16 < bytes.size();) {
        uint64_t length = 0;
        std::memcpy(&length, bytes.data() + at, sizeof(length));
        const std::string event = bytes.substr(at + 12 + 9, length - 9);
        if (event.find("gradients/") != std::string::npos || event.find("parameters/") != std::string::npos)
          all.push_back(event);
        at += length + 16;
      }
    }
    return all;
  };
  Json job = decoder();
  job["training"]["tensorboard"] = true;
  job["training"]["histogram_steps"] = 4;
  job["training"]["logical_ranks"] = 2;
  for (const char* precision : {"fp32", "bf16"}) {
    job["training"]["precision"] = precision;
    const std::string name = precision;
    expect_trained(1, job, name + "1");
    expect_trained(2, job, name + "2");
    EXPECT_GT(histograms(name + "1").size(), 20u);
    EXPECT_TRUE(histograms(name + "2") == histograms(name + "1")) << precision;
  }
}

TEST_F(RanksOfTraining, NameTheSlowOneAmongThem) {
  const auto warnings = std::make_shared<Warnings>();
  log_ = warnings;
  Json job = decoder();
  job["training"]["max_steps"] = 40;
  const FastClock fast(1'000'000);
  expect_trained(3, job, "run", false, [&](int rank, TrainRequest& request) {
    if (rank == 1) request.clock = &fast;
  });
  const Json summary = summary_of("run");
  ASSERT_TRUE(summary.contains("slow_rank"));
  EXPECT_EQ(summary["slow_rank"]["rank"], 1);
  EXPECT_EQ(summary["slow_rank"]["host"], summary["ranks"][1]["host"]);
  EXPECT_GT(summary["slow_rank"]["times"], 2);
  const auto told = [](const std::string& text) { return text.find("computes") != std::string::npos; };
  EXPECT_EQ(std::count_if(warnings->all.begin(), warnings->all.end(), told), 1);
}

TEST(SlowRank, TakesLongerThanTheMedianOfTheOthers) {
  EXPECT_FALSE(find_slow_rank({10}));
  EXPECT_FALSE(find_slow_rank({10, 11.9}));
  EXPECT_FALSE(find_slow_rank({0.1, 0.5}));  // not enough yet to be sure
  EXPECT_FALSE(find_slow_rank({10, 10, 11, 0}));
  const std::optional<SlowRank> slow = find_slow_rank({10, 30, 12, 10});
  ASSERT_TRUE(slow);
  EXPECT_EQ(slow->rank, 1);
  EXPECT_NEAR(slow->times, 3, 1e-9);
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
