// A second queue beside that of a GPU, and marks of recorded graphs that it waits for: what gradients that leave during backward
// stand on.
#include <gtest/gtest.h>

#include <vector>

#include "support/on_gpu.h"
#include "tensor/cuda_runtime.h"
#include "tensor/device.h"

namespace brisk {
namespace {

class DeviceQueueOnGpu : public testing::OnGpu {
 protected:
  // Kernels are ops' affair: bytes are set and copied, over so much memory that it takes a while.
  static constexpr int64_t kBytes = int64_t{256} << 20;

  void set(void* data, int value) {
    cuda::check(cudaMemsetAsync(data, value, kBytes, cuda::stream()), "setting bytes");
  }
  void copy(void* to, const void* from) {
    cuda::check(cudaMemcpyAsync(to, from, kBytes, cudaMemcpyDeviceToDevice, cuda::stream()), "copying bytes");
  }
  std::vector<int> bytes_of(const Buffer& buffer) {
    std::vector<char> all(kBytes);
    cuda_device().copy_out(all.data(), buffer.data(), kBytes);
    return {all.front(), all[kBytes / 2], all.back()};
  }
};

TEST_F(DeviceQueueOnGpu, BeginsBehindItsMarkAndIsWaitedFor) {
  Device& device = cuda_device();
  Buffer first(device, kBytes), second(device, kBytes), third(device, kBytes);
  const std::unique_ptr<DeviceQueue> queue = device.queue();
  const std::unique_ptr<DeviceMark> mark = device.mark();
  for (int turn = 1; turn <= 3; ++turn) {
    set(first.data(), turn);
    mark->set();
    queue->wait_for(*mark);
    queue->run([&] { copy(second.data(), first.data()); });
    queue->hold_back_device();
    copy(third.data(), second.data());
    EXPECT_EQ(bytes_of(third), (std::vector<int>{turn, turn, turn}));
  }
}

TEST_F(DeviceQueueOnGpu, WaitsForAPlaceWithinAGraphWheneverThatRuns) {
  Device& device = cuda_device();
  Buffer first(device, kBytes), second(device, kBytes), later(device, kBytes), seen(device, kBytes);
  const std::unique_ptr<DeviceQueue> queue = device.queue();
  const std::unique_ptr<DeviceMark> middle = device.mark();
  const std::unique_ptr<DeviceGraph> graph = device.record([&] {
    EXPECT_TRUE(device.is_recording());
    copy(second.data(), first.data());
    middle->set();
    for (int i = 0; i < 20; ++i) copy(later.data(), second.data());  // the graph goes on for a while
  });
  EXPECT_FALSE(device.is_recording());
  for (int turn = 1; turn <= 4; ++turn) {
    set(first.data(), turn);
    graph->run();
    queue->wait_for(*middle);
    queue->run([&] { copy(seen.data(), second.data()); });
    queue->hold_back_device();
    EXPECT_EQ(bytes_of(seen), (std::vector<int>{turn, turn, turn})) << "run " << turn;
    EXPECT_EQ(bytes_of(later), (std::vector<int>{turn, turn, turn})) << "run " << turn;
  }
}

// Otherwise nothing would be hidden behind backward: the copy behind the mark is done while the graph still runs.
TEST_F(DeviceQueueOnGpu, DoesNotWaitForTheRestOfTheGraph) {
  Device& device = cuda_device();
  Buffer first(device, kBytes), later(device, kBytes), seen(device, kBytes);
  const std::unique_ptr<DeviceQueue> queue = device.queue();
  const std::unique_ptr<DeviceMark> middle = device.mark(), end = device.mark();
  const std::unique_ptr<DeviceGraph> graph = device.record([&] {
    set(first.data(), 7);
    middle->set();
    for (int i = 0; i < 2000; ++i) copy(later.data(), first.data());
  });
  device.wait();
  graph->run();
  end->set();
  queue->wait_for(*middle);
  const std::unique_ptr<DeviceClock> clock = queue->clock();
  clock->stamp();
  queue->run([&] { copy(seen.data(), first.data()); });
  clock->stamp();
  EXPECT_EQ(clock->seconds().size(), 1);  // waits for the queue alone
  EXPECT_FALSE(end->reached()) << "the graph was over before what waits for its beginning";
  device.wait();
  EXPECT_EQ(bytes_of(seen), (std::vector<int>{7, 7, 7}));
}

}  // namespace
}  // namespace brisk
