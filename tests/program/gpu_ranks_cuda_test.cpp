// Ranks that train on GPUs, as processes of `brisk launch`. Where the machine has fewer GPUs than ranks they share them: NCCL
// believes ranks with host ids of their own to be on several machines and goes over sockets, which proves that it is right and
// says nothing about speed.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "program/support/small_job.h"

namespace brisk::program {
namespace {

class GpuRanks : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists("/proc/driver/nvidia/version")) GTEST_SKIP() << "no NVIDIA GPU to run this on";
    const char* chosen = std::getenv("BRISK_NCCL_LIBRARY");
    const char* library = chosen != nullptr ? chosen : "libnccl.so.2";
    if (::dlopen(library, RTLD_LAZY | RTLD_LOCAL) == nullptr)
      GTEST_SKIP() << "no NCCL to run this with: " << ::dlerror();
    write_text(folder / "text.txt", english_like_text(100));
    job["device"] = "cuda";
    job["training"]["max_steps"] = 30;
    job["training"]["save_steps"] = 15;
    job["training"]["eval_steps"] = 10;
    job["training"]["logging_steps"] = 1;
  }

  static ProcessOptions together() {
    return {.environment = {"NCCL_HOSTID=test", "NCCL_SOCKET_IFNAME=lo", "NCCL_IB_DISABLE=1"}, .timeout_seconds = 400};
  }

  Outcome train(int ranks, const std::string& output, const std::vector<std::string>& more = {}) const {
    write_job(folder, job);
    std::vector<std::string> arguments = {"launch",   "-n",  std::to_string(ranks), "train", "job.json",
                                          "--output", output};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_brisk(arguments, folder, together());
  }

  void expect_trained(int ranks, const std::string& output, const std::vector<std::string>& more = {}) const {
    const Outcome outcome = train(ranks, output, more);
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_EQ(has(outcome.err, "NCCL 2."), ranks > 1) << outcome.err;
  }

  void expect_same_curve(const std::string& output, const std::string& reference, double tolerance) const {
    const std::vector<Json> curve = metrics_of(folder / output), expected = metrics_of(folder / reference);
    ASSERT_EQ(curve.size(), expected.size());
    ASSERT_FALSE(curve.empty());
    for (size_t i = 0; i < curve.size(); ++i) {
      for (const char* key : {"loss", "accuracy", "gradient_norm", "tokens"}) {
        if (!expected[i].contains(key)) continue;
        const double a = expected[i][key], b = curve[i][key];
        EXPECT_NEAR(b, a, tolerance * (1 + std::abs(a))) << output << ": " << key << " of line " << i;
      }
    }
  }

  void expect_same_bits(const std::string& output, const std::string& reference) const {
    expect_same_curve(output, reference, 0);
    EXPECT_EQ(last_model_bytes(folder / output), last_model_bytes(folder / reference)) << output;
  }

  TemporaryFolder folder;
  Json job = small_job();
};

TEST_F(GpuRanks, HaveTheCurveOfOneProcess) {
  for (const char* precision : {"fp32", "bf16"}) {
    for (const char* optimizer : {"adamw", "muon"}) {
      job["training"]["precision"] = precision;
      job["training"]["optimizer"] = optimizer;
      const std::string name = std::string(precision) + optimizer;
      expect_trained(1, name + "1");
      for (const int ranks : {2, 3}) {
        expect_trained(ranks, name + std::to_string(ranks));
        expect_same_curve(name + std::to_string(ranks), name + "1", precision == std::string("fp32") ? 5e-4 : 3e-2);
      }
    }
  }
}

TEST_F(GpuRanks, InF16SkipTheSameSteps) {
  job["training"]["precision"] = "fp16";
  expect_trained(1, "one");
  expect_trained(2, "two");
  expect_same_curve("two", "one", 3e-2);
}

TEST_F(GpuRanks, ThatAreMoreThanTheSequencesOfAStepHaveItToo) {
  job["training"]["batch_size"] = 2;
  job["training"]["gradient_accumulation_steps"] = 1;
  job["training"]["precision"] = "fp32";
  expect_trained(1, "one");
  expect_trained(4, "four");
  expect_same_curve("four", "one", 5e-4);
}

TEST_F(GpuRanks, WithMicroBatchesOfTheirOwnSizesRecordGraphsAtOtherStepsAndAgree) {
  job["training"]["precision"] = "fp32";
  job["training"]["max_steps"] = 60;  // graphs are recorded, replayed, and one step in between is measured op by op
  job["training"]["micro_batch_tokens"] = 96;
  expect_trained(1, "one");
  expect_trained(2, "two");
  expect_same_curve("two", "one", 2e-3);
}

TEST_F(GpuRanks, WithLogicalRanksHaveTheSameBitsForAnyNumber) {
  for (const char* precision : {"fp32", "bf16"}) {
    job["training"]["logical_ranks"] = 4;
    job["training"]["precision"] = precision;
    job["training"]["micro_batch_tokens"] = 512;
    const std::string name = precision;
    for (const int ranks : {1, 2, 4}) expect_trained(ranks, name + std::to_string(ranks));
    for (const int ranks : {2, 4}) expect_same_bits(name + std::to_string(ranks), name + "1");
  }
}

TEST_F(GpuRanks, GoOnWithAnyOtherNumberOfThem) {
  job["training"]["logical_ranks"] = 4;
  job["training"]["precision"] = "fp32";
  job["training"]["micro_batch_tokens"] = 512;
  job["training"]["lr_scheduler"] = "constant";
  expect_trained(1, "whole");
  for (const int before : {1, 2, 4}) {
    for (const int after : {1, 2, 4}) {
      const std::string name = std::to_string(before) + std::to_string(after);
      job["training"]["max_steps"] = 15;
      expect_trained(before, name);
      job["training"]["max_steps"] = 30;
      expect_trained(after, name, {"--resume"});
      EXPECT_EQ(last_model_bytes(folder / name), last_model_bytes(folder / "whole")) << before << ", then " << after;
    }
  }
}

TEST_F(GpuRanks, MoreThanGpusAreRefusedUnlessTheyAreToldToShare) {
  write_job(folder, job);
  const Outcome outcome =
      run_brisk({"launch", "-n", "17", "train", "job.json", "--output", "run"}, folder, {.timeout_seconds = 400});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_TRUE(has(outcome.err, "a GPU is for one rank")) << outcome.err;
  EXPECT_FALSE(std::filesystem::exists(folder / "run"));
}

TEST_F(GpuRanks, WithoutNcclSayWhatIsMissing) {
  write_job(folder, job);
  ProcessOptions options = together();
  options.environment.push_back("BRISK_NCCL_LIBRARY=/no/such/libnccl.so.2");
  const Outcome outcome = run_brisk({"launch", "-n", "2", "train", "job.json", "--output", "run"}, folder, options);
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_TRUE(has(outcome.err, "NCCL, which connects the GPUs, cannot be loaded")) << outcome.err;
  EXPECT_FALSE(std::filesystem::exists(folder / "run"));
}

// The others wait for their GPU, which waits for the one that is gone.
TEST_F(GpuRanks, EndInTimeWhenOneOfThemIsKilled) {
  job["training"]["max_steps"] = 100000;
  write_job(folder, job);
  Process process({"launch", "-n", "2", "train", "job.json", "--output", "run"}, folder, together());
  ASSERT_TRUE(process.wait_for("  left "));  // a step is told
  pid_t victim = -1;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename().string();
    std::error_code ignored;
    if (name.find_first_not_of("0123456789") != std::string::npos ||
        std::filesystem::read_symlink(entry.path() / "cwd", ignored) != std::filesystem::path(folder.path()))
      continue;
    std::ifstream file(entry.path() / "environ");
    const std::string environment((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    if (environment.find("BRISK_RANK=1" + std::string(1, '\0')) != std::string::npos) victim = std::stoi(name);
  }
  ASSERT_GT(victim, 0);
  kill(victim, SIGKILL);
  const auto start = std::chrono::steady_clock::now();
  const Outcome outcome = process.finish();
  EXPECT_LT(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), 60);
  EXPECT_EQ(outcome.exit_code, 128 + SIGKILL) << outcome.err;
  EXPECT_TRUE(has(outcome.err, "rank 1 of 2")) << outcome.err;
}

TEST_F(GpuRanks, TellOfTheGpuOfEachInTheSummary) {
  expect_trained(2, "run");
  const Json summary = read_json(folder / "run/summary.json");
  EXPECT_EQ(summary["world_size"], 2);
  EXPECT_EQ(summary["ranks"].size(), 2);
  EXPECT_GT(summary["ranks"][1]["peak_memory_bytes"].get<double>(), 0);
}

}  // namespace
}  // namespace brisk::program
