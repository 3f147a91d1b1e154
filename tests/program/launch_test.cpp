// `brisk launch` and the launchers of MPI: the same run on several processes, and what happens when one of them is gone.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "program/support/small_job.h"

namespace brisk::program {
namespace {

class Launch : public ::testing::Test {
 protected:
  Launch() {
    write_text(folder / "text.txt", english_like_text(100));
    job["device"] = "cpu";  // four ranks want four GPUs
    job["training"]["max_steps"] = 60;
    job["training"]["logical_ranks"] = 4;
    job["training"]["threads"] = 1;
    job["training"]["save_steps"] = 10;
    job["training"]["eval_steps"] = 20;
  }

  Outcome launch(int ranks, std::vector<std::string> more) const {
    write_job(folder, job);
    std::vector<std::string> arguments = {"launch", "-n", std::to_string(ranks), "train", "job.json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_brisk(arguments, folder);
  }

  // The process that is this rank of a launch in `folder`; -1: there is none.
  pid_t process_of_rank(int rank) const {
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      const std::string name = entry.path().filename().string();
      if (name.find_first_not_of("0123456789") != std::string::npos) continue;
      std::error_code ignored;
      if (std::filesystem::read_symlink(entry.path() / "cwd", ignored) != std::filesystem::path(folder.path()))
        continue;
      std::ifstream file(entry.path() / "environ");
      const std::string environment((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
      const std::string wanted = "BRISK_RANK=" + std::to_string(rank);
      if (environment.find(wanted + std::string(1, '\0')) != std::string::npos) return std::stoi(name);
    }
    return -1;
  }

  TemporaryFolder folder;
  Json job = small_job();
};

TEST_F(Launch, TrainsWithTheBitsOfOneProcess) {
  train_small(folder, job, "one");
  const Outcome outcome = launch(2, {"--output", "two"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(curve_of(folder / "two"), curve_of(folder / "one"));
  EXPECT_EQ(last_model_bytes(folder / "two"), last_model_bytes(folder / "one"));
  // One rank talks.
  const std::string last_step = "step 60/60";
  EXPECT_EQ(outcome.err.find(last_step), outcome.err.rfind(last_step)) << outcome.err;
  EXPECT_EQ(outcome.out.find('\n'), outcome.out.size() - 1) << outcome.out;
  const Json summary = read_json(folder / "two/summary.json");
  EXPECT_EQ(summary["world_size"], 2);
  EXPECT_GT(summary["ledger"]["communication"].get<double>(), 0);
}

TEST_F(Launch, SavesTogetherWhenItIsInterrupted) {
  job["training"]["max_steps"] = 100000;
  write_job(folder, job);
  Process process({"launch", "-n", "2", "train", "job.json", "--output", "run"}, folder);
  ASSERT_TRUE(process.wait_for("step 2"));
  process.send(SIGINT);
  const Outcome outcome = process.finish();
  EXPECT_EQ(outcome.exit_code, 130) << outcome.err;
  EXPECT_TRUE(has(outcome.err, "brisk train run --resume")) << outcome.err;
  EXPECT_FALSE(has(outcome.err, "was ended by signal")) << outcome.err;
  EXPECT_FALSE(checkpoints_of(folder / "run").empty());
}

// Whoever starts a job again because it was interrupted (130) relies on what it had being there.
TEST_F(Launch, IsNotTakenForInterruptedWhereNothingCouldBeSaved) {
  job["training"]["max_steps"] = 100000;
  job["training"]["save_steps"] = 100000;
  write_job(folder, job);
  Process process({"launch", "-n", "2", "--restarts", "1", "train", "job.json", "--output", "run"}, folder);
  ASSERT_TRUE(process.wait_for("step 2"));
  std::filesystem::remove_all(folder / "run/checkpoints");
  write_text(folder / "run/checkpoints", "in the way");
  process.send(SIGINT);
  const Outcome outcome = process.finish();
  EXPECT_EQ(outcome.exit_code, 2) << outcome.err;
  EXPECT_TRUE(has(outcome.err, "was not saved")) << outcome.err;
  EXPECT_FALSE(has(outcome.err, "restart 1")) << outcome.err;
}

// One rank is done with its share of the evaluation long before the other.
TEST_F(Launch, IsInterruptedInAnEvaluationByAllRanksOrByNone) {
  std::string uneven;
  for (int i = 0; i < 60; ++i) uneven += english_like_text(i < 30 ? 40 : 1) + "\n";
  write_text(folder / "valid.txt", uneven);
  job["data"]["validation"] = "valid.txt";
  job["training"].erase("logical_ranks");
  job["training"]["max_steps"] = 100000;
  job["training"]["eval_steps"] = 1;
  write_job(folder, job);
  for (int trial = 0; trial < 3; ++trial) {
    const std::string run = "run" + std::to_string(trial);
    Process process({"launch", "-n", "2", "--restarts", "1", "train", "job.json", "--output", run}, folder);
    ASSERT_TRUE(process.wait_for("  left "));  // a step is told
    process.sleep(0.05 + 0.07 * trial);
    process.send(SIGTERM);
    const Outcome outcome = process.finish();
    EXPECT_EQ(outcome.exit_code, 130) << outcome.err;
    EXPECT_FALSE(has(outcome.err, "restart 1")) << outcome.err;
    const Outcome resumed = run_brisk(
        {"train", run, "--resume", "--set", "training.max_steps=1", "--set", "training.eval_steps=0"}, folder);
    EXPECT_TRUE(has(resumed.err, "resuming ")) << resumed.err;
  }
}

TEST_F(Launch, NamesTheRankThatWasKilledAndTheRunGoesOnWithAnyNumber) {
  train_small(folder, job, "one");
  write_job(folder, job);
  Process process({"launch", "-n", "4", "train", "job.json", "--output", "run"}, folder);
  ASSERT_TRUE(process.wait_for("  left "));  // a step is told
  const pid_t rank = process_of_rank(2);
  ASSERT_GT(rank, 0);
  kill(rank, SIGKILL);
  const Outcome outcome = process.finish();
  if (outcome.exit_code == 0) GTEST_SKIP() << "it was over before the signal";
  EXPECT_EQ(outcome.exit_code, 128 + SIGKILL) << outcome.err;
  const std::string who = " (process " + std::to_string(rank) + ") was ended by signal 9";
  EXPECT_TRUE(has(outcome.err, "rank 2 of 4 on ") && has(outcome.err, who)) << outcome.err;
  EXPECT_FALSE(has(outcome.err, "has ended")) << outcome.err;  // told once
  const Outcome resumed = launch(2, {"--output", "run", "--resume"});
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_EQ(last_model_bytes(folder / "run"), last_model_bytes(folder / "one"));
}

// A checkpoint after every step: whoever is killed, some rank is writing its part of one, or about to.
TEST_F(Launch, HasWholeCheckpointsAloneWhicheverRankIsKilledWhileTheyAreSaved) {
  job["training"]["max_steps"] = 120;
  job["training"]["save_steps"] = 1;
  job["training"]["eval_steps"] = 1000;
  train_small(folder, job, "one");
  write_job(folder, job);
  for (int trial = 0; trial < 3; ++trial) {
    const std::string run = "run" + std::to_string(trial);
    Process process({"launch", "-n", "4", "train", "job.json", "--output", run}, folder);
    ASSERT_TRUE(process.wait_for("  left "));  // a step is told
    process.sleep(0.03 * trial);
    if (const pid_t rank = process_of_rank(trial); rank > 0) kill(rank, SIGKILL);
    process.finish();
    const int after = trial % 2 == 0 ? 1 : 2;
    const Outcome resumed = launch(after, {"--output", run, "--resume"});
    ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
    EXPECT_EQ(last_model_bytes(folder / run), last_model_bytes(folder / "one")) << run;
    for (const std::string& name : checkpoints_of(folder / run)) EXPECT_TRUE(name.starts_with("step-")) << name;
  }
}

TEST_F(Launch, StartsAgainWithTheRanksThatAreLeft) {
  job["training"]["max_steps"] = 1200;
  train_small(folder, job, "one");
  write_job(folder, job);
  Process process({"launch", "-n", "4", "--restarts", "1", "train", "job.json", "--output", "run"}, folder);
  ASSERT_TRUE(process.wait_for("  left "));  // a step is told
  if (const pid_t rank = process_of_rank(3); rank > 0) kill(rank, SIGKILL);
  const Outcome outcome = process.finish();
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  if (!has(outcome.err, "was ended by signal 9")) GTEST_SKIP() << "it was over before the signal";
  EXPECT_TRUE(has(outcome.err, "restart 1 of 1, from the last checkpoint with 2 ranks")) << outcome.err;
  EXPECT_EQ(last_model_bytes(folder / "run"), last_model_bytes(folder / "one"));
}

// In training, evaluation or a save: whatever it is busy with.
TEST_F(Launch, GoesOnWhereverARankIsKilled) {
  job["training"]["max_steps"] = 400;
  job["training"]["save_steps"] = 7;
  job["training"]["eval_steps"] = 5;
  train_small(folder, job, "one");
  write_job(folder, job);
  int killed = 0;
  for (int trial = 0; trial < 6; ++trial) {
    const std::string run = "run" + std::to_string(trial);
    Process process({"launch", "-n", "2", "--restarts", "1", "train", "job.json", "--output", run}, folder);
    ASSERT_TRUE(process.wait_for("  left "));  // a step is told
    process.sleep(0.013 * trial);
    if (const pid_t rank = process_of_rank(trial % 2); rank > 0) kill(rank, SIGKILL);
    const Outcome outcome = process.finish();
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    killed += has(outcome.err, "was ended by signal 9") ? 1 : 0;
    EXPECT_EQ(last_model_bytes(folder / run), last_model_bytes(folder / "one")) << trial;
  }
  EXPECT_GT(killed, 0);
}

TEST_F(Launch, SlowARankThatIsStoppedEndsItWithinHalfAMinute) {
  job["training"]["max_steps"] = 1000000;
  write_job(folder, job);
  for (const int stopped : {0, 1}) {
    const std::string run = "run" + std::to_string(stopped);
    Process process({"launch", "-n", "2", "train", "job.json", "--output", run}, folder);
    ASSERT_TRUE(process.wait_for("  left "));  // a step is told
    const pid_t rank = process_of_rank(stopped);
    ASSERT_GT(rank, 0);
    const auto start = std::chrono::steady_clock::now();
    kill(rank, SIGSTOP);
    const Outcome outcome = process.finish();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    EXPECT_EQ(outcome.exit_code, 3) << outcome.err;
    const std::string name = "rank " + std::to_string(stopped) + " of 2 on ";
    EXPECT_TRUE(has(outcome.err, name)) << outcome.err;
    EXPECT_EQ(outcome.err.find("no sign of life for 20 s"), outcome.err.rfind("no sign of life for 20 s"))
        << outcome.err;
    EXPECT_TRUE(has(outcome.err, "; its last step was ")) << outcome.err;
    EXPECT_TRUE(has(outcome.err, "--resume")) << outcome.err;
    EXPECT_LT(took.count(), 30);
    EXPECT_EQ(process_of_rank(stopped), -1);
  }
}

TEST_F(Launch, SaysOnceWhatIsWrong) {
  job["training"]["optimizer"] = "sgd";
  const Outcome outcome = launch(3, {"--output", "run"});
  EXPECT_EQ(outcome.exit_code, 2);
  const std::string key = "training.optimizer";
  EXPECT_NE(outcome.err.find(key), std::string::npos) << outcome.err;
  EXPECT_EQ(outcome.err.find(key), outcome.err.rfind(key)) << outcome.err;
  EXPECT_FALSE(std::filesystem::exists(folder / "run"));
  EXPECT_EQ(run_brisk({"launch", "-n", "0", "train", "job.json"}, folder).exit_code, 2);
  EXPECT_TRUE(has(run_brisk({"launch", "-n", "2", "generate", "run"}, folder).err, "'generate' runs in one process"));
}

TEST_F(Launch, FindsRanksThatNobodyStartedTogether) {
  job["training"]["max_steps"] = 20;
  train_small(folder, job, "one");
  write_job(folder, job);
  const auto rank = [&](int number) {
    return ProcessOptions{.environment = {"RANK=" + std::to_string(number), "WORLD_SIZE=2", "MASTER_ADDR=localhost",
                                          "MASTER_PORT=" + std::to_string(21000 + ::getpid() % 8000)}};
  };
  Process second({"train", "job.json", "--output", "run"}, folder, rank(1));
  const Outcome first = run_brisk({"train", "job.json", "--output", "run"}, folder, rank(0));
  ASSERT_EQ(first.exit_code, 0) << first.err;
  EXPECT_EQ(second.finish().exit_code, 0);
  EXPECT_EQ(last_model_bytes(folder / "run"), last_model_bytes(folder / "one"));
}

TEST_F(Launch, StartsASingleRankAgainFromItsCheckpoint) {
  job["training"]["max_steps"] = 1500;
  train_small(folder, job, "one");
  write_job(folder, job);
  Process process({"launch", "-n", "1", "--restarts", "1", "train", "job.json", "--output", "run"}, folder);
  ASSERT_TRUE(process.wait_for("  left "));  // a step is told
  process.sleep(0.2);
  if (const pid_t rank = process_of_rank(0); rank > 0) kill(rank, SIGKILL);
  const Outcome outcome = process.finish();
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  if (!has(outcome.err, "was ended by signal 9")) GTEST_SKIP() << "it was over before the signal";
  EXPECT_TRUE(has(outcome.err, "resuming run after step ")) << outcome.err;
  EXPECT_EQ(last_model_bytes(folder / "run"), last_model_bytes(folder / "one"));
}

// As a batch script of Slurm that was put back into the queue.
TEST_F(Launch, GoesOnByItselfWhereSlurmHasStartedItAgain) {
  write_job(folder, job);
  const ProcessOptions first{.environment = {"SLURM_JOB_ID=7", "SLURM_RESTART_COUNT=0"}};
  const ProcessOptions again{.environment = {"SLURM_JOB_ID=7", "SLURM_RESTART_COUNT=1"}};
  const std::vector<std::string> command = {"train", "job.json", "--output", "run", "--overwrite"};
  const std::vector<std::string> shorter = {"train", "job.json", "--output", "run", "--overwrite", "--stop", "30u"};
  ASSERT_EQ(run_brisk(shorter, folder, again).exit_code, 0);  // nothing is there yet
  const Outcome resumed = run_brisk(command, folder, again);
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_TRUE(has(resumed.err, "SLURM_RESTART_COUNT is 1")) << resumed.err;
  EXPECT_TRUE(has(resumed.err, "resuming run after step 30")) << resumed.err;
  const Outcome replaced = run_brisk(command, folder, first);
  EXPECT_TRUE(has(replaced.err, "the run that was there is replaced")) << replaced.err;
}

TEST_F(Launch, EndsBeforeTheSlurmAllocationDoes) {
  job["training"].erase("max_steps");
  write_job(folder, job);
  const std::vector<std::string> command = {"train", "job.json", "--output", "run", "--stop", "auto"};
  const Outcome outside = run_brisk(command, folder);
  EXPECT_EQ(outside.exit_code, 2);
  EXPECT_TRUE(has(outside.err, "SLURM_JOB_ID is not set")) << outside.err;
  EXPECT_FALSE(std::filesystem::exists(folder / "run"));
  const std::string end = std::to_string(std::time(nullptr) + 22);
  const ProcessOptions inside{.environment = {"SLURM_JOB_ID=7", "SLURM_JOB_END_TIME=" + end}};
  const auto start = std::chrono::steady_clock::now();
  const Outcome outcome = run_brisk(command, folder, inside);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_TRUE(has(outcome.err, "training.stop auto: ended after ")) << outcome.err;
  EXPECT_GT(took.count(), 6);
  EXPECT_LT(took.count(), 20);
}

}  // namespace
}  // namespace brisk::program
