// BRISK_ISA forces the kernels of a lesser machine; all of them train the same model.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "program/support/small_job.h"

namespace brisk::program {
namespace {

const std::vector<std::string> kSets = {"baseline", "avx2", "avx512", "avx512bf16", "amx"};

class InstructionSets : public ::testing::Test {
 protected:
  InstructionSets() { write_text(folder / "text.txt", english_like_text(100)); }

  // Those this machine can run, the best last.
  std::vector<std::string> available() {
    Json job = small_job();
    job["training"]["max_steps"] = 1;
    train_small(folder, job, "probe");
    const std::string best = read_json(folder / "probe/summary.json")["isa"];
    return {kSets.begin(), std::find(kSets.begin(), kSets.end(), best) + 1};
  }

  Outcome train(const std::string& set, const std::string& precision, const std::string& run) {
    Json job = small_job();
    job["training"]["precision"] = precision;
    return train_small(folder, job, run, {.environment = {"BRISK_ISA=" + set}});
  }

  TemporaryFolder folder;
};

TEST_F(InstructionSets, AllTrainTheSameModel) {
  const std::vector<std::string> sets = available();
  std::vector<double> losses;
  for (const std::string& set : sets) {
    train(set, "fp32", set);
    const Json summary = read_json(folder / set + "/summary.json");
    EXPECT_EQ(summary["isa"], set);
    losses.push_back(summary["loss"]);
    EXPECT_NEAR(losses.back(), losses.front(), 1e-4) << set;
    EXPECT_NEAR(step_lines(metrics_of(folder / set)).front()["loss"].get<double>(),
                step_lines(metrics_of(folder / sets[0])).front()["loss"].get<double>(), 1e-6)
        << set;
  }
}

TEST_F(InstructionSets, AllTrainInBf16WhenAsked) {
  double full = 0;
  for (const std::string& set : available()) {
    if (set == "baseline") {
      train(set, "fp32", "full");
      full = read_json(folder / "full/summary.json")["loss"];
      continue;
    }
    const Outcome outcome = train(set, "bf16", set);
    const Json summary = read_json(folder / set + "/summary.json");
    EXPECT_EQ(summary["precision"], "bf16") << set;
    EXPECT_NEAR(summary["loss"].get<double>(), full, 0.02 * full) << set;
    // Without instructions for it, the user is told what it costs.
    if (set == "avx2" || set == "avx512") {
      EXPECT_NE(outcome.err.find("warning: precision bf16 makes this run slower"), std::string::npos) << outcome.err;
    }
  }
}

TEST_F(InstructionSets, WithoutBf16AreNeverChosenForIt) {
  const std::vector<std::string> sets = available();
  for (const char* set : {"baseline", "avx2", "avx512"}) {
    if (std::find(sets.begin(), sets.end(), set) == sets.end()) continue;
    const Outcome outcome = train(set, "auto", set);
    EXPECT_EQ(read_json(folder / set + "/summary.json")["precision"], "fp32") << set;
    EXPECT_NE(outcome.err.find("has no bf16 instructions"), std::string::npos) << outcome.err;
  }
}

TEST_F(InstructionSets, ForFp16AreNoneAndTheUserIsTold) {
  const Outcome outcome = train(available().size() > 1 ? "avx2" : "baseline", "fp16", "run");
  EXPECT_NE(outcome.err.find("warning: precision fp16"), std::string::npos) << outcome.err;
  EXPECT_EQ(read_json(folder / "run/summary.json")["precision"], "fp32");
}

TEST_F(InstructionSets, ThatAreUnknownAreRefused) {
  write_job(folder, small_job());
  const Outcome outcome =
      run_brisk({"train", "job.json", "--output", "run"}, folder, {.environment = {"BRISK_ISA=nonsense"}});
  EXPECT_EQ(outcome.exit_code, 2);
  for (const char* part : {"BRISK_ISA=nonsense", "avx2", "avx512"}) {
    EXPECT_NE(outcome.err.find(part), std::string::npos) << outcome.err;
  }
  EXPECT_EQ(listing(folder / "run"), "");
}

}  // namespace
}  // namespace brisk::program
