// What connects GPUs, on the CPU's memory and with an NCCL of our own (tests/fake_nccl). Whole trainings over it:
// tests/train/run/ranks_test.cpp.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/runtime.h"
#include "comm/shared_memory.h"
#include "support/silent_log.h"
#include "train/engine/process_group.h"
#include "train/engine/shard_transport.h"

namespace brisk {
namespace {

// What each rank threw.
std::vector<std::string> on_ranks_over_nccl(int count, const std::function<void(ConnectedProcesses&)>& body) {
  auto group = make_thread_group(count);
  std::vector<std::string> errors(static_cast<size_t>(count));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < count; ++rank) {
    threads.emplace_back([&, rank] {
      Runtime runtime({.threads = 1,
                       .environment = {{"BRISK_NCCL_LIBRARY", BRISK_FAKE_NCCL}},
                       .log = std::make_shared<test::SilentLog>()});
      const RuntimeScope scope(runtime);
      ConnectedProcesses processes(*group[static_cast<size_t>(rank)]);
      try {
        processes.connect_gpus();
        body(processes);
      } catch (const std::exception& error) {
        errors[static_cast<size_t>(rank)] = error.what();
        group[static_cast<size_t>(rank)]->fail(error.what());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return errors;
}

TEST(NcclTransport, IsTriedBeforeItIsUsed) {
  for (const int ranks : {1, 2, 5}) {
    for (const std::string& error :
         on_ranks_over_nccl(ranks, [](ConnectedProcesses& processes) { try_nccl(cpu_device(), *processes.gpus()); }))
      EXPECT_EQ(error, "") << ranks << " ranks";
  }
}

TEST(NcclTransport, ReducesWhatWasBegunInAnyBucketsToTheBitsOfTheTree) {
  constexpr int64_t kCount = 96;
  const auto errors = on_ranks_over_nccl(3, [](ConnectedProcesses& processes) {
    ParameterStore store;
    Parameter* weights = store.add({.name = "weights", .rows = 6, .cols = 16});
    store.allocate(cpu_device(), {weights}, DType::f32, ParameterStore::Purpose::training);
    StepState state(cpu_device());
    const std::vector<int64_t> shards = {0, 32, 32, kCount};
    for (const bool ordered : {true, false}) {
      const auto transport = make_nccl_transport(store, state, *processes.gpus(), shards, ordered);
      const float of_rank[] = {1, 1e8f, -1e8f};
      for (int64_t i = 0; i < kCount; ++i) store.flat_gradient().f32()[i] = of_rank[processes.rank()];
      transport->begin_reduce(0, 16);
      transport->begin_reduce(16, 80);
      transport->begin_reduce(80, kCount);
      transport->wait_for_reduce();
      // (1 + 1e8) - 1e8, and (-1e8 + 1e8) + 1 from the last rank to the first, as that library adds.
      const float expected = ordered ? 0 : 1;
      const int64_t begin = shards[static_cast<size_t>(processes.rank())];
      const int64_t end = shards[static_cast<size_t>(processes.rank()) + 1];
      for (int64_t i = begin; i < end; ++i) {
        BRISK_CHECK(store.flat_gradient().f32()[i] == expected, "element {} of rank {} is {}, expected {}", i,
                    processes.rank(), store.flat_gradient().f32()[i], expected);
      }
      BRISK_CHECK(transport->bytes_sent() == 4 * (kCount - (end - begin)), "{} bytes", transport->bytes_sent());
    }
  });
  for (const std::string& error : errors) EXPECT_EQ(error, "");
}

TEST(NcclTransport, SumsTheNumbersOfAStep) {
  const auto errors = on_ranks_over_nccl(4, [](ConnectedProcesses& processes) {
    ParameterStore store;
    Parameter* weights = store.add({.name = "weights", .rows = 4, .cols = 16});
    store.allocate(cpu_device(), {weights}, DType::f32, ParameterStore::Purpose::training);
    StepState state(cpu_device());
    const auto transport = make_nccl_transport(store, state, *processes.gpus(), {0, 16, 32, 48, 64}, false);
    StepNumbers& numbers = *state.numbers();
    numbers.squared_norm = 1 << processes.rank();
    numbers.loss_sum = 0.5;
    numbers.targets = 10 + processes.rank();
    numbers.rate = 7;
    transport->sum(state);
    BRISK_CHECK(numbers.squared_norm == 15 && numbers.loss_sum == 2 && numbers.targets == 46 && numbers.rate == 7,
                "{} {} {} {}", numbers.squared_norm, numbers.loss_sum, numbers.targets, numbers.rate);
  });
  for (const std::string& error : errors) EXPECT_EQ(error, "");
}

}  // namespace
}  // namespace brisk
