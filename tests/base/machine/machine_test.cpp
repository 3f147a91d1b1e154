#include "base/machine/machine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/machine/isa.h"
#include "base/threads.h"

namespace brisk {
namespace {

TEST(Machine, HasCoresMemoryAndAName) {
  const Machine machine = read_machine();
  EXPECT_FALSE(machine.cpu_model.empty());
  EXPECT_GE(machine.cores, 1);
  EXPECT_GE(machine.logical_processors, machine.cores);
  EXPECT_GT(machine.memory_total_bytes, int64_t{64} << 20);
  EXPECT_GT(machine.memory_available_bytes, 0);
  EXPECT_LE(machine.memory_available_bytes, machine.memory_total_bytes);
  EXPECT_FALSE(machine.system.empty());
  for (const Cache& cache : machine.caches) {
    EXPECT_GE(cache.level, 1);
    EXPECT_LE(cache.level, 4);
    EXPECT_GE(cache.bytes, 1024);
    EXPECT_LE(cache.bytes, int64_t{4} << 30);
  }
  EXPECT_TRUE(std::is_sorted(machine.caches.begin(), machine.caches.end(),
                             [](const Cache& a, const Cache& b) { return a.level < b.level; }));
}

TEST(Machine, KnowsHowLongTheProcessRuns) {
  const double before = seconds_since_process_start();
  EXPECT_GT(before, 0);
  EXPECT_LT(before, 600);
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  const double after = seconds_since_process_start();
  EXPECT_GE(after - before, 0.025);
  EXPECT_LT(after - before, 60);
}

#if defined(__x86_64__)
TEST(Machine, AgreesWithTheCompilerAboutInstructionSets) {
  const InstructionSets& sets = instruction_sets();
  __builtin_cpu_init();
  EXPECT_EQ(sets.avx2, __builtin_cpu_supports("avx2") != 0);
  EXPECT_EQ(sets.fma, __builtin_cpu_supports("fma") != 0);
  EXPECT_EQ(sets.avx512f, __builtin_cpu_supports("avx512f") != 0);
  EXPECT_EQ(sets.avx512bw, __builtin_cpu_supports("avx512bw") != 0);
  EXPECT_EQ(sets.avx512dq, __builtin_cpu_supports("avx512dq") != 0);
  EXPECT_EQ(sets.avx512vl, __builtin_cpu_supports("avx512vl") != 0);
  EXPECT_EQ(sets.avx512_bf16, __builtin_cpu_supports("avx512bf16") != 0);
  EXPECT_TRUE(best_isa() < Isa::amx || sets.amx_bf16);
  EXPECT_TRUE(best_isa() < Isa::avx512bf16 || sets.avx512_bf16);
  const std::vector<std::string> names = instruction_set_names(sets);
  EXPECT_EQ(std::count(names.begin(), names.end(), "avx2"), sets.avx2 ? 1 : 0);
}
#endif

TEST(Machine, PeakMemoryRisesWithUseAndStays) {
  const int64_t before = peak_memory_bytes();
  EXPECT_GT(before, 0);
  constexpr int64_t kBytes = int64_t{64} << 20;
  {
    // More than was ever held: the peak, not the present, is the start.
    const std::vector<char> memory(static_cast<size_t>(before + kBytes), 1);
    EXPECT_GE(peak_memory_bytes(), before + kBytes);
  }
  EXPECT_GE(peak_memory_bytes(), before + kBytes) << "it stays when the memory is given back";
}

TEST(Machine, DiskSpaceIsThatOfTheNearestFolderThatExists) {
  const int64_t here = disk_free_bytes(testing::TempDir());
  EXPECT_GT(here, 0);
  const int64_t below = disk_free_bytes(testing::TempDir() + "/not/there/yet");
  EXPECT_NEAR(static_cast<double>(below), static_cast<double>(here), 0.1 * static_cast<double>(here));
}

TEST(Machine, MemoryBandwidthIsPlausible) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "every access is checked: this would measure the sanitizer, for a minute";
#endif
  const MemoryBandwidth bandwidth = measure_memory_bandwidth();
  for (const double rate :
       {bandwidth.read_gb_per_second, bandwidth.copy_gb_per_second, bandwidth.triad_gb_per_second}) {
    EXPECT_GT(rate, 0);
    EXPECT_LT(rate, 10000);
  }
}

}  // namespace
}  // namespace brisk
