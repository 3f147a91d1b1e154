// Runs whose length or whose checkpoints the clock decides, on a clock of their own: the same in every run, on any machine.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "base/runtime.h"
#include "checkpoint/checkpoint.h"
#include "job/job.h"
#include "support/manual_clock.h"
#include "support/sample_text.h"
#include "support/scratch_folder.h"
#include "train/run/trainer.h"

namespace brisk {
namespace {

using test::TickingClock;

class CollectedLines final : public LogSink {
 public:
  void line(LogLevel, std::string_view text) override { lines_ += std::string(text) + "\n"; }
  bool has(const std::string& part) const { return test::has(lines_, part); }

 private:
  std::string lines_;
};

class ARunOnItsOwnClock : public ::testing::Test {
 protected:
  ARunOnItsOwnClock() { folder_.write("text.txt", testing::prose(4000, 7)); }

  Job job(const std::string& settings) const {
    Job job = job_from_json_text(R"({"device": "cpu",
        "model": {"d_model": 16, "num_layers": 1, "num_heads": 2, "vocab_size": 300},
        "training": {"batch_size": 4, "max_length": 32, "logging_steps": 1, "precision": "fp32", "learning_rate": 1e-3,
                     "eval_steps": 40, "tensorboard": false, )" +
                                     settings + "}}",
                                 "job.json");
    job.data.train = {DataSource(folder_ / "text.txt")};
    job.data.cache_dir = folder_ / "cache";
    job.output = folder_ / "run";
    resolve_defaults(job);
    return job;
  }

  // Cancelled after `last_step`, where it comes to that.
  TrainOutcome train_with(const Job& job, const Clock& clock, bool resume = false, int64_t last_step = -1) {
    log_ = std::make_shared<CollectedLines>();
    Runtime runtime({.threads = 1, .log = log_});
    const RuntimeScope scope(runtime);
    return train(job, {.resume = resume, .clock = &clock, .on_step = [&](const Progress& progress) {
                         if (progress.step == last_step) runtime.cancel();
                       }});
  }

  std::vector<double> rates() const {
    std::vector<double> rates;
    std::istringstream lines(test::contents_of(folder_ / "run/metrics.jsonl"));
    for (std::string line; std::getline(lines, line);) {
      const auto json = nlohmann::json::parse(line);
      if (json.contains("learning_rate")) rates.push_back(json["learning_rate"]);
    }
    return rates;
  }

  const test::ScratchFolder folder_;
  std::shared_ptr<CollectedLines> log_;
};

constexpr double kTick = 1e-3, kBox = 20;  // seconds: a step is about a hundred readings

TEST_F(ARunOnItsOwnClock, EndsInItsTimeWithTheScheduleCompleteAndSaysWhatItExpects) {
  const TrainOutcome outcome = train_with(job(R"("stop": "20s")"), TickingClock(kTick));
  EXPECT_EQ(outcome.summary.ended, "finished");
  EXPECT_GT(outcome.summary.wall_seconds, 0.9 * kBox);
  EXPECT_LT(outcome.summary.wall_seconds, 1.1 * kBox);
  EXPECT_TRUE(log_->has("training.stop 20s: about "));
  EXPECT_TRUE(log_->has("training.stop 20s: ended after "));
  const std::vector<double> all = rates();
  ASSERT_GT(all.size(), 30u);
  EXPECT_LT(all.front(), 0.5e-3);
  EXPECT_GT(*std::max_element(all.begin(), all.end()), 0.95e-3);
  EXPECT_LT(all.back(), 0.1e-3);
  ASSERT_TRUE(outcome.summary.last_evaluation && outcome.summary.last_step);
  EXPECT_EQ(outcome.summary.last_evaluation->step, outcome.summary.last_step->step);

  const TrainOutcome again = train_with(job(R"("stop": "20s")"), TickingClock(kTick), true);
  EXPECT_EQ(again.summary.last_step->step, outcome.summary.last_step->step) << "nothing is left to do";
}

// Whose first readings lie far apart, as in a process that touches its memory for the first time.
class SlowAtFirst final : public Clock {
 public:
  int64_t nanoseconds() const override { return now_ += ++readings_ < 120 ? 60'000'000 : 1'000'000; }

 private:
  mutable int64_t now_ = 0, readings_ = 0;
};

TEST_F(ARunOnItsOwnClock, IsNotEndedByASlowFirstStepAndALargeValidation) {
  Job timed = job(R"("stop": "30s")");
  timed.training.eval_steps = -1;
  timed.data.validation_fraction = 0.9;
  const TrainOutcome outcome = train_with(timed, SlowAtFirst());
  ASSERT_TRUE(outcome.summary.last_step);
  EXPECT_GT(outcome.summary.last_step->step, 10);
  EXPECT_TRUE(log_->has(" epochs ("));
  EXPECT_TRUE(log_->has("steps were expected)"));
}

TEST_F(ARunOnItsOwnClock, GoesOnWithTheTimeThatIsLeft) {
  const Job timed = job(R"("stop": "20s")");
  const TrainOutcome stopped = train_with(timed, TickingClock(kTick), false, 30);
  EXPECT_TRUE(stopped.interrupted);
  const size_t before = rates().size();
  const CheckpointState state = read_checkpoint_state(list_checkpoints(stopped.run_path).back().path);
  EXPECT_GT(state.elapsed_seconds, 1);
  EXPECT_GT(state.progress, 0.05);
  EXPECT_LT(state.progress, 0.95);
  const TrainOutcome resumed = train_with(timed, TickingClock(kTick), true);
  EXPECT_EQ(resumed.summary.ended, "finished");
  EXPECT_NEAR(resumed.summary.wall_seconds, kBox, 0.1 * kBox) << "of both processes";
  const std::vector<double> all = rates();
  ASSERT_GT(all.size(), before + 5);
  EXPECT_NEAR(all[before], all[before - 1], 0.1e-3) << "the schedule goes on where it was";
  EXPECT_LT(all.back(), 0.1e-3);
}

TEST_F(ARunOnItsOwnClock, SavesWhenTheLastCheckpointIsSoOld) {
  const double step_seconds = train_with(job(R"("max_steps": 20)"), TickingClock(kTick)).summary.wall_seconds / 20;
  std::filesystem::remove_all(folder_ / "run");
  const std::string minutes = std::to_string(5 * step_seconds / 60);
  const TrainOutcome outcome =
      train_with(job(R"("max_steps": 20, "save_total_limit": 0, "save_minutes": )" + minutes), TickingClock(kTick));
  EXPECT_GT(list_checkpoints(outcome.run_path).size(), 1u) << "save_steps says at the end only";
  EXPECT_LT(list_checkpoints(outcome.run_path).size(), 10u);
}

}  // namespace
}  // namespace brisk
