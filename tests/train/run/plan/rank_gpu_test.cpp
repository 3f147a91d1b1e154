#include "train/run/plan/rank_gpu.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "base/runtime.h"
#include "comm/shared_memory.h"
#include "support/silent_log.h"

namespace brisk {
namespace {

std::vector<CudaGpu> gpus(int count) {
  std::vector<CudaGpu> all;
  for (int i = 0; i < count; ++i) all.push_back({.name = "a GPU", .bus_id = "0000:0" + std::to_string(i) + ":00.0"});
  return all;
}

// What each of two ranks of this machine gets, or the message that refuses it.
std::vector<std::string> devices(const std::string& asked, const std::vector<CudaGpu>& of_first,
                                 const std::vector<CudaGpu>& of_second, const std::string& host_id = "") {
  auto group = make_thread_group(2);
  std::vector<std::string> got(2);
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      Environment environment;
      if (!host_id.empty()) environment["NCCL_HOSTID"] = host_id + std::to_string(rank);
      Runtime runtime({.threads = 1, .environment = environment, .log = std::make_shared<test::SilentLog>()});
      const RuntimeScope scope(runtime);
      ConnectedProcesses processes(*group[rank], 2, static_cast<int>(rank));
      try {
        got[rank] = device_of_rank(asked, rank == 0 ? of_first : of_second, processes);
      } catch (const UserError& error) {
        got[rank] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return got;
}

using Devices = std::vector<std::string>;

TEST(DeviceOfRank, IsAGpuForEach) {
  for (const char* asked : {"auto", "cuda", "gpu"})
    EXPECT_EQ(devices(asked, gpus(2), gpus(2)), (Devices{"cuda:0", "cuda:1"}));
}

TEST(DeviceOfRank, IsTheCpuWhereNobodyHasAGpuOrWantsOne) {
  EXPECT_EQ(devices("auto", {}, {}), (Devices{"cpu", "cpu"}));
  EXPECT_EQ(devices("cpu", gpus(2), gpus(2)), (Devices{"cpu", "cpu"}));
  EXPECT_EQ(devices("cuda", {}, {}), (Devices{"cuda", "cuda"})) << "which says why there is none";
}

TEST(DeviceOfRank, IsNotOneForAll) {
  for (const std::string& said : devices("cuda:1", gpus(2), gpus(2)))
    EXPECT_NE(said.find("\"cuda:1\" is one GPU, and there are 2 ranks, which have one each: say \"cuda\""),
              std::string::npos)
        << said;
}

TEST(DeviceOfRank, IsRefusedAlikeWhereThereAreTooFew) {
  for (const std::string& said : devices("auto", gpus(1), gpus(1)))
    EXPECT_NE(said.find("2 ranks on a machine where each sees 1 GPU: a GPU is for one rank"), std::string::npos)
        << said;
  for (const std::string& said : devices("auto", gpus(1), {}))
    EXPECT_NE(said.find("rank 1 sees no GPU, and others do"), std::string::npos) << said;
}

TEST(DeviceOfRank, IsSharedWhereTheirHostIdsSaySo) {
  EXPECT_EQ(devices("cuda", gpus(1), gpus(1), "own"), (Devices{"cuda:0", "cuda:0"}));
}

}  // namespace
}  // namespace brisk
