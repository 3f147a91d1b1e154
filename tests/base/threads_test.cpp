#include "base/threads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <limits>
#include <new>
#include <numeric>
#include <vector>

namespace brisk {
namespace {

TEST(ThreadPool, EveryThreadRunsTheBodyOnce) {
  ThreadPool pool(4);
  std::vector<std::atomic<int>> runs(4);
  for (int round = 0; round < 50; ++round) pool.run([&](int thread) { ++runs[static_cast<size_t>(thread)]; });
  for (const std::atomic<int>& count : runs) EXPECT_EQ(count, 50);
}

TEST(ThreadPool, NobodyPassesABarrierBeforeAllHaveCome) {
  ThreadPool pool(3);
  std::atomic<int> arrived = 0, early = 0;
  pool.run([&](int) {
    for (int round = 1; round <= 20; ++round) {
      ++arrived;
      pool.barrier();
      if (arrived < 3 * round) ++early;
      pool.barrier();
    }
  });
  EXPECT_EQ(early, 0);
}

TEST(ThreadPool, SharesCoverARangeOnceInWholeGrains) {
  ThreadPool pool(3);
  for (const int64_t n : {0, 1, 7, 64, 100, 193}) {
    std::vector<std::atomic<int>> seen(static_cast<size_t>(n));
    std::atomic<int> broken = 0;
    pool.for_range(n, 16, [&](int64_t begin, int64_t end, int) {
      if (begin % 16 != 0) ++broken;
      for (int64_t i = begin; i < end; ++i) ++seen[static_cast<size_t>(i)];
    });
    EXPECT_EQ(broken, 0);
    for (const std::atomic<int>& count : seen) EXPECT_EQ(count, 1) << n;
  }
}

TEST(ThreadPool, AnExceptionOfAnyThreadReachesTheCallerAndThePoolGoesOn) {
  ThreadPool pool(3);
  for (int thrower = 0; thrower < 3; ++thrower) {
    std::atomic<int> ended = 0;
    const auto body = [&](int thread) {
      if (thread == thrower) throw std::bad_alloc();
      ++ended;
    };
    EXPECT_THROW(pool.run(body), std::bad_alloc);
    EXPECT_EQ(ended, 2);
    EXPECT_THROW(pool.run_parts(body), std::bad_alloc);
  }
  std::atomic<int> runs = 0;
  pool.run([&](int) { ++runs; });
  EXPECT_EQ(runs, 3);
}

TEST(ThreadPool, NobodyWaitsAtABarrierForAThreadThatThrew) {
  ThreadPool pool(3);
  for (int thrower = 0; thrower < 3; ++thrower) {
    EXPECT_THROW(pool.run([&](int thread) {
      pool.barrier();
      if (thread == thrower) throw std::bad_alloc();
      pool.barrier();
      pool.barrier();
    }),
                 std::bad_alloc);
    std::atomic<int> arrived = 0, early = 0;
    pool.run([&](int) {
      ++arrived;
      pool.barrier();
      if (arrived < 3) ++early;
    });
    EXPECT_EQ(early, 0);
  }
}

TEST(Threads, AreNoMoreThanSlurmGaveToTheTask) {
  const int cores = available_cores();
  EXPECT_EQ(cores_of_task(""), cores);
  EXPECT_EQ(cores_of_task("1"), 1);
  EXPECT_EQ(cores_of_task("100000"), cores);
  EXPECT_EQ(cores_of_task("", cores), 1);
  EXPECT_EQ(cores_of_task("1", 1), 1);
  for (const char* nonsense : {"0", "-1", "two", "1x"}) EXPECT_EQ(cores_of_task(nonsense), cores) << nonsense;
}

#if defined(__SSE2__)
TEST(ThreadPool, NumbersTooSmallForFullPrecisionAreZeroOnEveryThread) {
  ThreadPool pool(3);
  std::vector<float> result(3, -1.0f);
  pool.run([&](int thread) {
    volatile float smallest = std::numeric_limits<float>::min(), half = 0.5f;
    result[static_cast<size_t>(thread)] = smallest * half;
  });
  for (const float value : result) EXPECT_EQ(value, 0.0f);
}
#endif

}  // namespace
}  // namespace brisk
