#include <gtest/gtest.h>

#include <chrono>
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

// Runs `body` on every rank of a group, each with a runtime of its own; what they threw, by rank.
std::vector<std::string> on_ranks(int count, double silence, const std::function<void(Communicator&)>& body,
                                  int threads_per_rank = 1) {
  auto group = make_thread_group(count, silence);
  std::vector<std::string> errors(static_cast<size_t>(count));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < count; ++rank) {
    threads.emplace_back([&, rank, ranks = std::move(group[static_cast<size_t>(rank)])]() mutable {
      Runtime runtime({.threads = threads_per_rank});
      const RuntimeScope scope(runtime);
      try {
        body(*ranks);
      } catch (const std::exception& error) {
        errors[static_cast<size_t>(rank)] = error.what();
        ranks->fail(error.what());
      }
      ranks.reset();
    });
  }
  for (std::thread& thread : threads) thread.join();
  return errors;
}

TEST(SumTree, AddsNeighboursFirst) {
  std::vector<std::string> parts = {"0", "1", "2", "3", "4", "5"};
  sum_tree(6, [&](int64_t i, int64_t j) {
    auto& to = parts[static_cast<size_t>(i)];
    to = "(" + to + parts[static_cast<size_t>(j)] + ")";
  });
  EXPECT_EQ(parts[0], "(((01)(23))(45))");
  EXPECT_EQ(sum_in_tree({}), 0);
}

TEST(ThreadGroup, EveryCollectiveIsRightForAnyNumberOfRanks) {
  for (const int count : {1, 2, 3, 8}) {
    for (const std::string& error : on_ranks(count, 30, check_collectives, count == 3 ? 2 : 1)) EXPECT_EQ(error, "");
  }
}

TEST(ThreadGroup, SumsOfTwoRanksAreWhatFourAddFirst) {
  static constexpr int64_t kCount = 1000;
  const auto sum_over = [](int count, const std::function<float(int rank, int64_t i)>& number) {
    std::vector<float> sums(kCount);
    on_ranks(count, 30, [&](Communicator& ranks) {
      std::vector<float> data(kCount);
      for (int64_t i = 0; i < kCount; ++i) data[static_cast<size_t>(i)] = number(ranks.rank(), i);
      std::vector<int64_t> bounds(static_cast<size_t>(ranks.size()) + 1, kCount);
      bounds[0] = 0;  // all to rank 0
      ranks.sum_ranges(data.data(), bounds);
      if (ranks.rank() == 0) sums = data;
    });
    return sums;
  };
  const std::vector<float> four = sum_over(4, number_of_rank);
  const std::vector<float> two =
      sum_over(2, [](int rank, int64_t i) { return number_of_rank(2 * rank, i) + number_of_rank(2 * rank + 1, i); });
  EXPECT_EQ(four, two);
}

TEST(ThreadGroup, OneThreadOfARankAtATimeTalksToTheOthers) {
  const auto errors = on_ranks(2, 30, [](Communicator& ranks) {
    if (ranks.rank() == 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));  // rank 0's thread waits in a collective for so long
      ranks.barrier();
      return;
    }
    std::thread thread([&] { ranks.barrier(); });
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    std::string problem;
    try {
      ranks.barrier();
    } catch (const std::exception& error) {
      problem = error.what();
    }
    thread.join();
    BRISK_CHECK(problem.find("two threads of rank 0 talk to the others") != std::string::npos, "{}", problem);
  });
  for (const std::string& error : errors) EXPECT_EQ(error, "");
}

TEST(ThreadGroup, ARankThatFailsEndsTheOthersWithItsReason) {
  const auto errors = on_ranks(3, 30, [](Communicator& ranks) {
    ranks.at_step(17);
    if (ranks.rank() == 1) throw UserError("the disk is full");
    ranks.barrier();
  });
  EXPECT_EQ(errors[1], "the disk is full");
  for (const int rank : {0, 2}) EXPECT_EQ(errors[static_cast<size_t>(rank)], "rank 1 ended: the disk is full");
}

TEST(ThreadGroup, ARankThatLeavesIsNamedWithItsLastStep) {
  const auto errors = on_ranks(2, 30, [](Communicator& ranks) {
    ranks.at_step(17);
    if (ranks.rank() == 1) return;
    ranks.barrier();
  });
  EXPECT_NE(errors[0].find("rank 1 of 2"), std::string::npos) << errors[0];
  EXPECT_NE(errors[0].find("has ended; its last step was 17"), std::string::npos) << errors[0];
}

}  // namespace
}  // namespace brisk
