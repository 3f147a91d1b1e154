#include "comm/nccl.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/runtime.h"
#include "base/sum_tree.h"
#include "check_collectives.h"
#include "comm/shared_memory.h"
#include "support/silent_log.h"

namespace brisk {
namespace {

// Runs `body` on threads that are ranks, connected by a library of our own making; what they threw, by rank.
std::vector<std::string> on_nccl(int count, const std::function<void(Communicator&, Nccl&)>& body,
                                 const std::function<Environment(int rank)>& variables = {}) {
  auto group = make_thread_group(count);
  std::vector<std::string> errors(static_cast<size_t>(count));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < count; ++rank) {
    threads.emplace_back([&, rank, ranks = std::move(group[static_cast<size_t>(rank)])] {
      Environment environment = {{"BRISK_NCCL_LIBRARY", BRISK_FAKE_NCCL}};
      if (variables) environment = variables(rank);
      Runtime runtime({.threads = 1, .environment = environment, .log = std::make_shared<test::SilentLog>()});
      const RuntimeScope scope(runtime);
      try {
        const std::unique_ptr<Nccl> gpus = open_nccl(*ranks);
        body(*ranks, *gpus);
      } catch (const std::exception& error) {
        errors[static_cast<size_t>(rank)] = error.what();
        ranks->fail(error.what());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return errors;
}

// The suite that all transports pass, over NCCL's operations and an ordered sum.
class OverNccl final : public Communicator {
 public:
  OverNccl(Communicator& ranks, Nccl& gpus) : Communicator(ranks.rank(), ranks.size()), ranks_(ranks), gpus_(gpus) {}
  std::string transport() const override { return gpus_.version(); }

 private:
  void do_barrier() override { ranks_.barrier(); }
  void do_all_gather(const void* own, void* all, int64_t bytes) override { gpus_.all_gather(own, all, bytes, nullptr); }
  void do_sum_ranges(float* data, std::span<const int64_t> bounds) override {
    constexpr int64_t kPiece = 10'000;
    const int64_t begin = bounds[static_cast<size_t>(rank())], end = bounds[static_cast<size_t>(rank()) + 1];
    for (int64_t offset = 0; offset < bounds.back(); offset += kPiece) {
      std::vector<float> parts(static_cast<size_t>(size() * kPiece));
      gpus_.exchange_ranges(data, bounds, offset, kPiece, parts.data(), nullptr);
      const int64_t count = std::clamp<int64_t>(end - begin - offset, 0, kPiece);
      sum_tree(size(), [&](int64_t a, int64_t b) {
        for (int64_t i = 0; i < count; ++i)
          parts[static_cast<size_t>(a * count + i)] += parts[static_cast<size_t>(b * count + i)];
      });
      std::copy_n(parts.begin(), count, data + begin + offset);
    }
  }
  void do_share_ranges(void* data, std::span<const int64_t> bounds) override {
    gpus_.share_ranges(data, bounds, nullptr);
  }
  void do_collect_ranges(void* data, std::span<const int64_t> bounds, int root) override {
    gpus_.collect_ranges(data, bounds, root, nullptr);
  }

  Communicator& ranks_;
  Nccl& gpus_;
};

TEST(Nccl, EveryCollectiveIsRightForAnyNumberOfRanks) {
  for (const int count : {1, 2, 3, 8}) {
    const auto errors = on_nccl(count, [](Communicator& ranks, Nccl& gpus) {
      OverNccl all(ranks, gpus);
      check_collectives(all);
      BRISK_CHECK(gpus.version() == "NCCL 2.28.9", "{}", gpus.version());
    });
    for (const std::string& error : errors) EXPECT_EQ(error, "") << count << " ranks";
  }
}

TEST(Nccl, ReducesAnyPartOfAnArrayToWhoOwnsIt) {
  const std::vector<int64_t> bounds = {0, 100, 100, 250};
  const auto errors = on_nccl(3, [&](Communicator& ranks, Nccl& gpus) {
    for (const auto& [begin, end] : {std::pair(0, 50), std::pair(60, 130), std::pair(130, 250)}) {
      std::vector<float> data(250, static_cast<float>(1 + ranks.rank()));
      gpus.reduce_to_owners(data.data(), begin, end, bounds, nullptr);
      for (int64_t i = 0; i < 250; ++i) {
        const int owner = i < 100 ? 0 : 2;
        const bool summed = i >= begin && i < end && owner == ranks.rank();
        BRISK_CHECK(data[static_cast<size_t>(i)] == (summed ? 6.0f : static_cast<float>(1 + ranks.rank())),
                    "element {} of rank {} is {}", i, ranks.rank(), data[static_cast<size_t>(i)]);
      }
    }
  });
  for (const std::string& error : errors) EXPECT_EQ(error, "");
}

TEST(Nccl, ThatIsMissingIsSaidWithWhatToDo) {
  const auto errors = on_nccl(
      2, [](Communicator&, Nccl&) {},
      [](int rank) {
        return Environment{{"BRISK_NCCL_LIBRARY", rank == 1 ? "/no/such/libnccl.so.2" : BRISK_FAKE_NCCL}};
      });
  for (const std::string& error : errors) {
    EXPECT_NE(error.find("rank 1: NCCL, which connects the GPUs, cannot be loaded (/no/such/libnccl.so.2"),
              std::string::npos)
        << error;
    EXPECT_NE(error.find("BRISK_NCCL_LIBRARY"), std::string::npos) << error;
  }
}

TEST(Nccl, ThatIsAnotherLibraryIsRefused) {
  const auto errors = on_nccl(
      1, [](Communicator&, Nccl&) {},
      [](int) {
        return Environment{{"BRISK_NCCL_LIBRARY", "libm.so.6"}};
      });
  EXPECT_EQ(errors[0], "rank 0: libm.so.6 is no NCCL: it has no ncclGetVersion");
}

TEST(Nccl, ThatIsTooOldIsRefusedWithTheVersions) {
  setenv("BRISK_FAKE_NCCL_VERSION", "2804", 1);
  const auto errors = on_nccl(2, [](Communicator&, Nccl&) {});
  unsetenv("BRISK_FAKE_NCCL_VERSION");
  for (const std::string& error : errors)
    EXPECT_NE(error.find("is NCCL 2.8.4; 2.10.3 or newer is needed"), std::string::npos) << error;
}

TEST(Nccl, ARankThatEndsIsNoticedByWhoWaitsForItsGpu) {
  const auto errors = on_nccl(3, [](Communicator& ranks, Nccl& gpus) {
    if (ranks.rank() == 1) throw UserError("the disk is full");
    for (;;) {
      gpus.check();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  EXPECT_EQ(errors[1], "the disk is full");
  for (const int rank : {0, 2}) EXPECT_EQ(errors[static_cast<size_t>(rank)], "rank 1 ended: the disk is full");
}

TEST(Nccl, WhatWasGivenUpIsNotUsedAgain) {
  const auto errors = on_nccl(1, [](Communicator&, Nccl& gpus) {
    gpus.abort();
    float number = 1;
    gpus.all_gather(&number, &number, 4, nullptr);
  });
  EXPECT_EQ(errors[0], "the connection between the GPUs was given up");
}

TEST(Nccl, AConnectionThatBreaksEndsTheOthers) {
  const auto errors = on_nccl(2, [](Communicator& ranks, Nccl& gpus) {
    ranks.barrier();
    if (ranks.rank() == 1) return gpus.abort();
    for (;;) gpus.check();
  });
  EXPECT_EQ(errors[1], "");
  EXPECT_NE(errors[0].find("NCCL 2.28.9 on rank 0: while the GPUs exchanged data: remote process exited"),
            std::string::npos)
      << errors[0];
}

}  // namespace
}  // namespace brisk
