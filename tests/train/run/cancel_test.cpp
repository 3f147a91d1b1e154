#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "base/runtime.h"
#include "checkpoint/checkpoint.h"
#include "job/job.h"
#include "support/sample_text.h"
#include "support/scratch_folder.h"
#include "train/run/trainer.h"

namespace brisk {
namespace {

// Holds the training after step 3 until another thread has cancelled it.
class HoldingLog final : public LogSink {
 public:
  void line(LogLevel, std::string_view) override {}
  void progress(const Progress& progress, bool) override {
    if (progress.step != 3) return;
    reached = true;
    reached.notify_one();
    cancelled.wait(false);
  }

  std::atomic<bool> reached = false, cancelled = false;
};

class Cancelling : public ::testing::Test {
 protected:
  Job job(const std::string& output) const {
    Job job = job_from_json_text(R"({
      "device": "cpu", "model": {"d_model": 32, "num_layers": 1, "num_heads": 2, "vocab_size": 300},
      "training": {"max_steps": 8, "batch_size": 4, "max_length": 32, "threads": 1, "logging_steps": 1, "precision": "fp32", "seed": 3}})",
                                 "job.json");
    job.data.train = {DataSource(folder_ / "text.txt")};
    job.data.cache_dir = folder_ / "cache";
    job.output = folder_ / output;
    resolve_defaults(job);
    return job;
  }
  void SetUp() override { folder_.write("text.txt", testing::prose(4000, 7)); }

  const test::ScratchFolder folder_;
};

TEST_F(Cancelling, FromAnotherThreadEndsTheStepAndLeavesACheckpointThatGoesOnToTheSameBits) {
  const TrainOutcome whole = train(job("whole"), {});
  EXPECT_FALSE(whole.interrupted);
  {
    const auto log = std::make_shared<HoldingLog>();
    Runtime runtime({.log = log});
    std::thread other([&] {
      log->reached.wait(false);
      runtime.cancel();
      log->cancelled = true;
      log->cancelled.notify_one();
    });
    const RuntimeScope scope(runtime);
    const TrainOutcome outcome = train(job("stopped"), {});
    other.join();
    EXPECT_TRUE(outcome.interrupted);
    EXPECT_EQ(list_checkpoints(outcome.run_path).back().step, 3);
  }
  const TrainOutcome resumed = train(job("stopped"), {.resume = true});
  EXPECT_FALSE(resumed.interrupted);
  ASSERT_TRUE(whole.summary.last_step && resumed.summary.last_step);
  EXPECT_EQ(resumed.summary.last_step->step, 8);
  EXPECT_EQ(resumed.summary.last_step->loss(), whole.summary.last_step->loss());
}

}  // namespace
}  // namespace brisk
