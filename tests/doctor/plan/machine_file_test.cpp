#include "doctor/plan/machine_file.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "support/scratch_folder.h"

namespace brisk {
namespace {

using test::ScratchFolder;

const char* const kMachine = R"({"cpu": "A processor", "cores": 8, "memory_available_bytes": 8589934592,
  "peak_gflops": {"fp32": 900, "bf16": 0}, "product_gflops": {"fp32": 400, "bf16": 0},
  "memory_gb_per_second": {"read": 60, "copy": 40, "triad": 41}})";

std::string refusal(const std::string& text) {
  const ScratchFolder folder;
  const std::string path = folder.write("machine.json", text);
  try {
    read_machine_file(path, true);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(MachineFile, SaysWhatAPlanNeeds) {
  const ScratchFolder folder;
  const MachineRates machine = read_machine_file(folder.write("machine.json", kMachine), true);
  EXPECT_EQ(machine.name, "A processor");
  EXPECT_EQ(machine.cores, 8);
  EXPECT_EQ(machine.memory_bytes, 8589934592);
  EXPECT_DOUBLE_EQ(machine.fp32_products, 400);
  EXPECT_DOUBLE_EQ(machine.bf16_products, 0);
  EXPECT_DOUBLE_EQ(machine.copy_gb_per_second, 40);
  EXPECT_FALSE(machine.on_gpu);
}

TEST(MachineFile, AGpuTrainsUnlessTheJobSaysOtherwise) {
  std::string text = kMachine;
  text.back() = ',';
  text +=
      R"("gpus": [{"name": "A GPU", "memory_total_bytes": 85899345920, "product_gflops": {"fp32": 50000, "bf16": 600000},
           "memory_gb_per_second": {"copy": 3000}}]})";
  const ScratchFolder folder;
  const std::string path = folder.write("machine.json", text);
  const MachineRates gpu = read_machine_file(path, true);
  EXPECT_TRUE(gpu.on_gpu);
  EXPECT_EQ(gpu.name, "A GPU");
  EXPECT_DOUBLE_EQ(gpu.bf16_products, 600000);
  EXPECT_FALSE(read_machine_file(path, false).on_gpu);
}

std::string with_ranks(const std::string& ranks) {
  std::string text = kMachine;
  text.back() = ',';
  return text + R"("ranks": )" + ranks + "}";
}

TEST(MachineFile, TheSlowestOfSeveralRanksCounts) {
  const ScratchFolder folder;
  const MachineRates machine = read_machine_file(
      folder.write("ranks.json",
                   with_ranks(R"({"size": 4, "of_machine": 2, "transport": "shared memory", "threads": [2, 2, 2, 2],
          "product_gflops": {"fp32": [390, 350, 400, 380], "bf16": [0, 0, 0, 0]}, "copy_gb_per_second": [20, 18, 21, 22],
          "gather_seconds": 1e-6, "sum": [{"bytes": 4096, "seconds": 1e-6}], "share": [{"bytes": 4096, "seconds": 2e-6}]})")),
      true);
  ASSERT_TRUE(machine.ranks);
  EXPECT_EQ(machine.ranks->size, 4);
  EXPECT_EQ(machine.ranks->threads, 2);
  EXPECT_EQ(machine.ranks->transport, "shared memory");
  EXPECT_DOUBLE_EQ(machine.ranks->share.front().seconds, 2e-6);
  EXPECT_DOUBLE_EQ(machine.fp32_products, 350);
  EXPECT_DOUBLE_EQ(machine.copy_gb_per_second, 18);
  EXPECT_EQ(machine.memory_bytes, 8589934592 / 2);
}

TEST(MachineFile, ANetworkCanBeDescribed) {
  const ScratchFolder folder;
  const MachineRates machine = read_machine_file(
      folder.write(
          "ranks.json",
          with_ranks(R"({"size": 64, "latency_seconds": 1e-5, "bytes_per_second": 1.25e10, "sum_overlap": 0.9})")),
      true);
  ASSERT_TRUE(machine.ranks);
  EXPECT_DOUBLE_EQ(machine.ranks->bytes_per_second, 1.25e10);
  EXPECT_DOUBLE_EQ(machine.ranks->sum_overlap, 0.9);
  EXPECT_DOUBLE_EQ(machine.fp32_products, 400);
}

TEST(MachineFile, RanksThatAreNoneAreRefused) {
  EXPECT_NE(refusal(with_ranks("[2]")).find("\"ranks\" is"), std::string::npos);
  EXPECT_NE(refusal(with_ranks(R"({"size": 0, "bytes_per_second": 1})")).find("0 ranks"), std::string::npos);
  EXPECT_NE(refusal(with_ranks(R"({"size": 2})")).find("neither \"bytes_per_second\" nor"), std::string::npos);
  EXPECT_NE(refusal(with_ranks(R"({"size": 2, "sum": 3})")).find("expected a list"), std::string::npos);
  EXPECT_NE(refusal(with_ranks(R"({"size": 2, "sum": [{"bytes": 2, "seconds": 1}, {"bytes": 1, "seconds": 1}]})"))
                .find("do not grow"),
            std::string::npos);
  EXPECT_NE(refusal(with_ranks(R"({"size": 2, "bytes_per_second": 1, "threads": ["two"]})")).find("expected numbers"),
            std::string::npos);
}

TEST(MachineFile, WhatIsNoneIsRefused) {
  EXPECT_NE(refusal("{").find("not valid JSON"), std::string::npos);
  EXPECT_NE(refusal("[1]").find("a machine was expected"), std::string::npos);
  EXPECT_NE(refusal("{}").find("no \"cores\""), std::string::npos);
  EXPECT_NE(refusal(R"({"cores": "two"})").find("expected a number"), std::string::npos);
  std::string slow = kMachine;
  slow.replace(slow.find("\"fp32\": 400"), 11, "\"fp32\": 0");
  EXPECT_NE(refusal(slow).find("multiplies or copies nothing"), std::string::npos);
  for (const char* text : {"{", "[1]", "{}"})
    EXPECT_NE(refusal(text).find("brisk machine --json"), std::string::npos) << text;
}

}  // namespace
}  // namespace brisk
