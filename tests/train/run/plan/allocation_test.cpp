#include "train/run/plan/allocation.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "base/error.h"
#include "base/runtime.h"
#include "support/scratch_folder.h"

namespace brisk {
namespace {

std::string in_seconds_from_now(double seconds) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::to_string(std::chrono::duration_cast<std::chrono::seconds>(now).count() + static_cast<int64_t>(seconds));
}

double left_with(Environment environment) {
  Runtime runtime({.threads = 1, .environment = std::move(environment)});
  const RuntimeScope scope(runtime);
  return seconds_left_to_train();
}

std::string problem_with(const Environment& environment) {
  return test::message_of<UserError>([&] { left_with(environment); });
}

TEST(Allocation, LeavesItsTimeButForItsEnd) {
  EXPECT_NEAR(left_with({{"SLURM_JOB_ID", "7"}, {"SLURM_JOB_END_TIME", in_seconds_from_now(600)}}), 590, 2);
  EXPECT_NEAR(left_with({{"SLURM_JOB_ID", "7"}, {"SLURM_JOB_END_TIME", in_seconds_from_now(4000)}}), 3960, 2);
  EXPECT_NEAR(left_with({{"SLURM_JOB_ID", "7"}, {"SLURM_JOB_END_TIME", in_seconds_from_now(100000)}}), 99940, 2);
}

TEST(Allocation, IsRefusedWhereThereIsNoneOrNoTimeInIt) {
  EXPECT_NE(problem_with({}).find("SLURM_JOB_ID is not set"), std::string::npos) << problem_with({});
  const std::string late = problem_with({{"SLURM_JOB_ID", "7"}, {"SLURM_JOB_END_TIME", in_seconds_from_now(15)}});
  EXPECT_NE(late.find("too little to train"), std::string::npos) << late;
  const std::string odd = problem_with({{"SLURM_JOB_ID", "7;reboot"}});
  EXPECT_NE(odd.find("\"7;reboot\", expected a number"), std::string::npos) << odd;
  const std::string unknown = problem_with({{"SLURM_JOB_ID", "999999999"}});
  EXPECT_NE(unknown.find("squeue -h -j 999999999 -o %e"), std::string::npos) << unknown;
}

}  // namespace
}  // namespace brisk
