#include "bench/rank_transfers.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "base/runtime.h"
#include "comm/shared_memory.h"

namespace brisk {
namespace {

TEST(RankTransfers, EveryRankHasTheSameTimesOfEverySize) {
  constexpr int64_t kMost = int64_t{1} << 20;
  const auto ranks = make_thread_group(2);
  std::vector<RankTransfers> measured(ranks.size());
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < ranks.size(); ++rank)
    threads.emplace_back([&, rank] {
      Runtime runtime({.threads = 1});
      const RuntimeScope scope(runtime);
      measured[rank] = measure_transfers(*ranks[rank], kMost);
    });
  for (std::thread& thread : threads) thread.join();
  const RankTransfers& first = measured.front();
  EXPECT_EQ(first.ranks, 2);
  EXPECT_EQ(first.transport, "threads");
  EXPECT_GT(first.barrier_seconds, 0);
  EXPECT_GT(first.gather_seconds, 0);
  ASSERT_EQ(first.sum.size(), 5U);  // 4 KiB to 1 MiB
  ASSERT_EQ(first.share.size(), first.sum.size());
  EXPECT_EQ(first.sum.front().bytes, 4096);
  EXPECT_EQ(first.sum.back().bytes, kMost);
  for (size_t i = 0; i < first.sum.size(); ++i) {
    EXPECT_GT(first.sum[i].seconds, 0);
    EXPECT_NEAR(first.sum[i].bytes_per_second, 0.5 * static_cast<double>(first.sum[i].bytes) / first.sum[i].seconds, 1);
    EXPECT_EQ(first.sum[i].seconds, measured.back().sum[i].seconds);  // that of the slowest
    EXPECT_EQ(first.share[i].seconds, measured.back().share[i].seconds);
  }
}

}  // namespace
}  // namespace brisk
