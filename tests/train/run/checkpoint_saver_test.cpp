// Saves go on beside the steps, and nothing about a run shows it but its time.
#include "train/run/checkpoint_saver.h"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/runtime.h"
#include "job/job.h"
#include "support/sample_text.h"
#include "support/scratch_folder.h"
#include "train/run/plan/resource_checks.h"
#include "train/run/trainer.h"

namespace brisk {
namespace {

// Collects warnings with the step they came after, and tells a waiting writer how far training is.
class SteppingLog final : public LogSink {
 public:
  void line(LogLevel level, std::string_view text) override {
    const std::lock_guard lock(mutex_);
    if (level == LogLevel::warning) warnings.emplace_back(step.load(), text);
  }
  void progress(const Progress& progress, bool) override {
    step = progress.step;
    step.notify_all();
    if (on_step) on_step(progress.step);
  }
  void wait_for(int64_t wanted) {
    for (int64_t now = step; now < wanted; now = step) step.wait(now);
  }

  std::atomic<int64_t> step = 0;
  std::function<void(int64_t)> on_step;
  std::vector<std::pair<int64_t, std::string>> warnings;

 private:
  std::mutex mutex_;
};

class SavingInTheBackground : public ::testing::Test {
 protected:
  Job job(const std::string& output) const {
    Job job = job_from_json_text(R"({
      "device": "cpu", "model": {"d_model": 32, "num_layers": 1, "num_heads": 2, "vocab_size": 300, "dropout": 0.1},
      "training": {"max_steps": 12, "batch_size": 4, "max_length": 32, "threads": 1, "logging_steps": 1, "precision": "fp32",
                   "save_steps": 2, "save_minutes": 0, "save_total_limit": 0, "eval_steps": 100, "seed": 3}})",
                                 "job.json");
    job.data.train = {DataSource(folder_ / "text.txt")};
    job.data.cache_dir = folder_ / "cache";
    job.output = folder_ / output;
    resolve_defaults(job);
    return job;
  }
  void SetUp() override { folder_.write("text.txt", testing::prose(4000, 7)); }

  // Trains with a log of its own, so that it can be cancelled.
  TrainOutcome run(const Job& job, CheckpointWrite write = {}, bool resume = false) {
    runtime_ = std::make_unique<Runtime>(RuntimeOptions{.log = log_});
    const RuntimeScope scope(*runtime_);
    return train(job, {.resume = resume, .write_checkpoint = std::move(write)});
  }

  std::vector<int64_t> steps_of(const std::string& run) const {
    std::vector<int64_t> steps;
    for (const CheckpointPath& place : list_checkpoints(folder_ / run)) steps.push_back(place.step);
    return steps;
  }
  std::string model_of(const std::string& run) const {
    return test::contents_of(*latest_checkpoint(folder_ / run) + "/model.safetensors");
  }
  std::string moments_of(const std::string& run) const {
    return test::contents_of(*latest_checkpoint(folder_ / run) + "/optimizer.safetensors");
  }

  const test::ScratchFolder folder_;
  const std::shared_ptr<SteppingLog> log_ = std::make_shared<SteppingLog>();
  std::unique_ptr<Runtime> runtime_;
};

SaveResult failed(const std::string& problem) {
  SaveResult result;
  result.problem = problem;
  return result;
}

TEST_F(SavingInTheBackground, StepsGoOnWhileACheckpointIsWritten) {
  double held = 0;
  const TrainOutcome outcome = run(job("run"), [&](const auto& run, const auto& tensors, const auto& state) {
    const auto start = std::chrono::steady_clock::now();
    if (state.step == 2) log_->wait_for(3);  // would wait without end if training did, too
    held += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return save_checkpoint(run, tensors, state);
  });
  EXPECT_EQ(steps_of("run"), (std::vector<int64_t>{2, 4, 6, 8, 10, 12}));
  EXPECT_EQ(outcome.summary.checkpoints_saved, 6);
  EXPECT_GE(outcome.summary.checkpoint_write_seconds, held);
  double phases = 0;
  for (const auto& [phase, seconds] : outcome.summary.ledger) phases += seconds;
  EXPECT_NEAR(phases, outcome.summary.wall_seconds, 1e-6);
}

TEST_F(SavingInTheBackground, HasTheSameBitsHoweverLateItIsWritten) {
  const auto write_later = [&](const auto& run, const auto& tensors, const auto& state) {
    if (state.step < 12) log_->wait_for(state.step + 1);
    return save_checkpoint(run, tensors, state);
  };
  run(job("soon"));
  log_->step = 0;
  run(job("run"), write_later);
  ASSERT_EQ(steps_of("run"), steps_of("soon"));
  for (const int64_t step : steps_of("soon")) {
    const std::string place = fmt::format("/checkpoints/step-{:08}/", step);
    for (const char* file : {"model.safetensors", "optimizer.safetensors"}) {
      EXPECT_EQ(test::contents_of(folder_ / "run" + place + file), test::contents_of(folder_ / "soon" + place + file));
    }
  }
}

TEST_F(SavingInTheBackground, AKillBetweenCopyAndRenameLosesNothingThatWasWhole) {
  run(job("run"), [&](const auto& run, const auto& tensors, const auto& state) {
    if (state.step == 6) {  // as the disk is then, three steps later, with a file half written
      log_->wait_for(7);
      std::filesystem::copy(run, folder_ / "killed", std::filesystem::copy_options::recursive);
      folder_.write("killed/checkpoints/.step-00000006.partial/model.safetensors", "half");
    }
    return save_checkpoint(run, tensors, state);
  });
  Job killed = job("killed");
  run(killed, {}, true);
  EXPECT_EQ(steps_of("killed"), (std::vector<int64_t>{2, 4, 6, 8, 10, 12}));
  EXPECT_EQ(model_of("killed"), model_of("run"));
  EXPECT_EQ(moments_of("killed"), moments_of("run"));
  const auto curve = [&](const std::string& run) {
    std::vector<std::string> lines;
    const std::string text = test::contents_of(folder_ / run + "/metrics.jsonl");
    for (size_t begin = 0; begin < text.size(); begin = text.find('\n', begin) + 1) {
      lines.push_back(text.substr(begin, text.find("\"tokens_per_second\"", begin) - begin));
      lines.back().erase(std::min(lines.back().size(), lines.back().find("\"seconds\"")));  // of an evaluation
    }
    return lines;
  };
  EXPECT_EQ(curve("killed"), curve("run"));
}

TEST_F(SavingInTheBackground, AFailureIsToldAtTheNextStepAndTrainingGoesOn) {
  std::atomic<bool> has_failed = false;
  log_->on_step = [&](int64_t step) {
    if (step == 5) has_failed.wait(false);
  };
  const TrainOutcome outcome = run(job("run"), [&](const auto& run, const auto& tensors, const auto& state) {
    if (state.step != 4) return save_checkpoint(run, tensors, state);
    log_->wait_for(5);
    has_failed = true;
    has_failed.notify_all();
    return failed("the checkpoint of step 4 was not saved: the disk is full");
  });
  EXPECT_EQ(steps_of("run"), (std::vector<int64_t>{2, 6, 8, 10, 12}));
  ASSERT_EQ(log_->warnings.size(), 1u);
  EXPECT_TRUE(test::has(log_->warnings[0].second, "step 4 was not saved"));
  EXPECT_GE(log_->warnings[0].first, 5);
  EXPECT_LE(log_->warnings[0].first, 6) << "before the next save, at the latest";
}

TEST_F(SavingInTheBackground, AFailureOfTheLastSaveIsOneOfTheRun) {
  const auto write = [&](const auto& run, const auto& tensors, const auto& state) {
    return state.step < 12 ? save_checkpoint(run, tensors, state) : failed("the disk is full");
  };
  const std::string message = test::message_of<UserError>([&] { run(job("run"), write); });
  EXPECT_TRUE(test::has(message, "the last checkpoint could not be saved")) << message;
  EXPECT_TRUE(test::has(message, "step-00000010")) << message;
}

TEST_F(SavingInTheBackground, AWriterThatThrowsIsAFailureToo) {
  const auto write = [](const auto&, const auto&, const auto&) -> SaveResult {
    throw std::runtime_error("a surprise");
  };
  const std::string message = test::message_of<UserError>([&] { run(job("run"), write); });
  EXPECT_TRUE(test::has(message, "from the beginning")) << message;
  EXPECT_EQ(log_->warnings.size(), 6u);
  EXPECT_TRUE(test::has(log_->warnings[0].second, "step 2 was not saved: a surprise"));
}

TEST_F(SavingInTheBackground, AtMostOneIsInFlightAndNoneIsLost) {
  Job quick = job("run");
  quick.training.save_steps = 1;
  std::atomic<int> writing = 0;
  run(quick, [&](const auto& run, const auto& tensors, const auto& state) {
    EXPECT_EQ(++writing, 1);
    const SaveResult result = save_checkpoint(run, tensors, state);
    --writing;
    return result;
  });
  EXPECT_EQ(steps_of("run").size(), 12u);
}

TEST_F(SavingInTheBackground, AnInterruptWaitsForTheSaveInFlightAndSavesTheLastStep) {
  std::atomic<bool> cancelled = false;
  log_->on_step = [&](int64_t step) {
    if (step != 5) return;
    runtime_->cancel();
    cancelled = true;
    cancelled.notify_all();
  };
  const auto write = [&](const auto& run, const auto& tensors, const auto& state) {
    if (state.step == 4) cancelled.wait(false);
    return save_checkpoint(run, tensors, state);
  };
  EXPECT_TRUE(run(job("run"), write).interrupted);
  EXPECT_EQ(steps_of("run"), (std::vector<int64_t>{2, 4, 5}));
  log_->on_step = {};
  run(job("run"), {}, true);
  run(job("whole"));
  EXPECT_EQ(model_of("run"), model_of("whole"));
}

TEST_F(SavingInTheBackground, AnInterruptRightAfterASaveDoesNotSaveItAgain) {
  std::atomic<int> writes = 0;
  log_->on_step = [&](int64_t step) {
    if (step == 4) runtime_->cancel();
  };
  EXPECT_TRUE(run(job("run"), [&](const auto& run, const auto& tensors, const auto& state) {
                ++writes;
                return save_checkpoint(run, tensors, state);
              }).interrupted);
  EXPECT_EQ(writes, 2);
  EXPECT_EQ(steps_of("run"), (std::vector<int64_t>{2, 4}));
}

TEST_F(SavingInTheBackground, TheBestModelIsOneThatCouldBeSaved) {
  Job best = job("run");
  best.training.eval_steps = 3;
  best.training.load_best_model_at_end = true;
  best.training.save_steps = 1000;
  std::vector<int64_t> tried;
  const TrainOutcome outcome = run(best, [&](const auto& run, const auto& tensors, const auto& state) {
    tried.push_back(state.step);
    if (state.step == 12 || state.step == 3) return save_checkpoint(run, tensors, state);
    log_->wait_for(state.step + 1);
    return failed("the disk is full");
  });
  // Each evaluation is better than the one before; only the first could be saved until the last.
  EXPECT_EQ(tried, (std::vector<int64_t>{3, 6, 9, 12}));
  EXPECT_EQ(steps_of("run"), (std::vector<int64_t>{3, 12}));
  ASSERT_TRUE(outcome.summary.best_evaluation);
  EXPECT_EQ(outcome.summary.best_evaluation->step, 12);
  EXPECT_EQ(read_checkpoint_state(*latest_checkpoint(folder_ / "run")).best_step, 12);
}

TEST_F(SavingInTheBackground, WithoutRoomForACopyTrainingWaits) {
  CheckpointSaver saver({.run = folder_ / "run", .copy_bytes = 0});
  ParameterStore store;
  ParameterSpec spec;
  spec.name = "weight";
  spec.cols = 8;
  store.add(spec);
  store.allocate(guarded_device(), {}, DType::f32, ParameterStore::Purpose::training);
  saver.begin(store, {.step = 1}, SaveMode::in_background);
  EXPECT_TRUE(saver.is_done());
  const SavedCheckpoint saved = saver.take();
  EXPECT_TRUE(saved.result.ok());
  EXPECT_FALSE(saved.in_background);
  EXPECT_EQ(saver.take_note(), "") << "the plan had told so";

  CheckpointSaver tight({.run = folder_ / "run", .copy_bytes = 50});  // it needs 96
  tight.begin(store, {.step = 2}, SaveMode::in_background);
  EXPECT_FALSE(tight.take().in_background);
  EXPECT_TRUE(test::has(tight.take_note(), "it needs 96 B and 50 B are available"));
  tight.begin(store, {.step = 3}, SaveMode::in_background);
  EXPECT_FALSE(tight.take().in_background);
  EXPECT_EQ(tight.take_note(), "") << "it is told once";
}

TEST(RoomForACopy, IsWhatThePlanLeaves) {
  MemoryPlan plan;
  plan.state_bytes = 3000;
  plan.saved_bytes = 1000;
  EXPECT_EQ(room_for_copy(plan, cpu_device(), kProgramBytes + 4000), 1000);
  EXPECT_EQ(room_for_copy(plan, cpu_device(), kProgramBytes + 3999), 0);
}

}  // namespace
}  // namespace brisk
