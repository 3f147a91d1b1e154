// `brisk bench` and `brisk machine` on several ranks: what each did, told by one.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "program/support/small_job.h"

namespace brisk::program {
namespace {

const std::vector<std::string> kTinyModel = {
    "bench",        "lm", "--width",   "64",  "--layers",    "1",    "--vocabulary", "64",       "--batch", "5",
    "--max-length", "16", "--seconds", "0.1", "--precision", "fp32", "--json",       "--device", "cpu"};

std::vector<std::string> with(std::vector<std::string> words, const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

TEST(MeasuredRanks, ABenchmarkTellsWhatEachDid) {
  const TemporaryFolder folder;
  const Outcome outcome = run_brisk(with({"launch", "-n", "2", "--threads-per-rank", "1"}, kTinyModel), folder);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json json = Json::parse(outcome.out);  // one object: one rank prints
  EXPECT_EQ(json["world_size"], 2);
  EXPECT_EQ(json["rank"], 0);
  EXPECT_EQ(json["transport"], "shared memory");
  EXPECT_EQ(json["batch"], 5);  // of the whole step
  ASSERT_EQ(json["ranks"].size(), 2U);
  std::vector<double> tokens;  // that each computed: its speed is by its own clock
  for (const Json& rank : json["ranks"]) {
    EXPECT_GT(rank["compute_seconds"].get<double>(), 0);
    EXPECT_GT(rank["exposed_communication_seconds"].get<double>(), 0);
    EXPECT_LE(rank["compute_seconds"].get<double>() + rank["exposed_communication_seconds"].get<double>(),
              1.001 * rank["seconds"].get<double>());
    EXPECT_GT(rank["peak_memory_bytes"].get<int64_t>(), 0);
    tokens.push_back(rank["tokens_per_second"].get<double>() * rank["seconds"].get<double>());
  }
  // Those of a step: three sequences here, two there.
  EXPECT_NEAR(tokens[0] / tokens[1], 1.5, 0.001);
  const double all = json["mean_tokens_per_second"].get<double>() * json["ranks"][0]["seconds"].get<double>();
  EXPECT_NEAR((tokens[0] + tokens[1]) / all, 1, 0.001);
}

TEST(MeasuredRanks, OneProcessHasNoOthers) {
  const TemporaryFolder folder;
  const Outcome outcome = run_brisk(kTinyModel, folder);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(json["world_size"], 1);
  EXPECT_FALSE(json.contains("ranks"));
}

TEST(MeasuredRanks, HaveAGpuEach) {
  const TemporaryFolder folder;
  const Outcome outcome = run_brisk({"launch", "-n", "2", "bench", "lm", "--device", "cuda:0"}, folder);
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_TRUE(has(outcome.err, "\"cuda:0\" is one GPU, and there are 2 ranks")) << outcome.err;
}

TEST(MeasuredRanks, WhatIsRefusedIsToldOnce) {
  const TemporaryFolder folder;
  const Outcome outcome = run_brisk({"launch", "-n", "2", "bench", "lm", "--shape", "huge"}, folder);
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_NE(outcome.err.find("--shape huge"), std::string::npos) << outcome.err;
  EXPECT_EQ(outcome.err.find("--shape huge"), outcome.err.rfind("--shape huge")) << outcome.err;
}

TEST(MeasuredRanks, TheMachineTellsWhatLiesBetweenThem) {
  const TemporaryFolder folder;
  const Outcome outcome = run_brisk({"launch", "-n", "2", "machine", "--json"}, folder);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json ranks = Json::parse(outcome.out)["ranks"];
  EXPECT_EQ(ranks["size"], 2);
  EXPECT_EQ(ranks["of_machine"], 2);
  EXPECT_GT(ranks["barrier_seconds"].get<double>(), 0);
  EXPECT_EQ(ranks["product_gflops"]["fp32"].size(), 2U);
  for (const char* operation : {"sum", "share"}) {
    ASSERT_EQ(ranks[operation].size(), 8U) << operation;
    EXPECT_EQ(ranks[operation].front()["bytes"], 4096);
    EXPECT_EQ(ranks[operation].back()["bytes"], 64 << 20);
  }
}

}  // namespace
}  // namespace brisk::program
