#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "infer/device_choice.h"

namespace brisk {
namespace {

CudaGpu gpu_at(const char* bus_id) { return {.name = "a GPU", .bus_id = bus_id}; }

// The library of tests/fake_nvml: 17 is 87 % busy, 65 is 12 %.
const CudaGpu busy = gpu_at("0000:17:00.0"), quiet = gpu_at("0000:65:00.0"), unknown = gpu_at("0000:99:00.0");

TEST(IdleGpus, AreNamedWithTheCommandThatUsesThem) {
  EXPECT_EQ(
      idle_gpus_text({busy, quiet}, 0, BRISK_FAKE_NVML),
      "one process computes on one GPU, and cuda:1 (12 % busy) is idle; brisk launch -n 2 train ... uses all of them");
  EXPECT_EQ(
      idle_gpus_text({busy, quiet, unknown}, 0, BRISK_FAKE_NVML),
      "one process computes on one GPU, and cuda:1 (12 % busy), cuda:2 are idle; brisk launch -n 3 train ... uses all of "
      "them");
}

TEST(IdleGpus, AreNotThoseThatOthersUse) {
  EXPECT_EQ(idle_gpus_text({quiet, busy}, 0, BRISK_FAKE_NVML), "");
  EXPECT_EQ(
      idle_gpus_text({unknown, busy, quiet}, 0, BRISK_FAKE_NVML),
      "one process computes on one GPU, and cuda:2 (12 % busy) is idle; CUDA_VISIBLE_DEVICES=0,2 brisk launch -n 2 train "
      "... uses these");
}

TEST(IdleGpus, AreNoneWhereThereIsOne) {
  EXPECT_EQ(idle_gpus_text({busy}, 0, BRISK_FAKE_NVML), "");
  EXPECT_EQ(idle_gpus_text({}, 0, BRISK_FAKE_NVML), "");
}

}  // namespace
}  // namespace brisk
