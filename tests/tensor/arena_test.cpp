#include "tensor/arena.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/random.h"

namespace brisk {
namespace {

struct Wanted {
  int64_t bytes;
  Lifetime life;
};

// Buffers that are alive at the same time never share a byte, every offset is a cache line, and the arena holds them.
void expect_sound(ArenaPlanner& planner, const std::vector<Wanted>& wanted, int64_t size) {
  for (size_t a = 0; a < wanted.size(); ++a) {
    const int64_t begin = planner.offset(static_cast<int>(a)), end = begin + wanted[a].bytes;
    EXPECT_GE(begin, 0);
    EXPECT_EQ(begin % 64, 0);
    EXPECT_LE(end, size);
    for (size_t b = 0; b < a; ++b) {
      if (!wanted[a].life.overlaps(wanted[b].life)) continue;
      const int64_t other = planner.offset(static_cast<int>(b)), other_end = other + wanted[b].bytes;
      EXPECT_TRUE(end <= other || other_end <= begin) << "buffers " << b << " and " << a << ": [" << other << ", "
                                                      << other_end << ") and [" << begin << ", " << end << ")";
    }
  }
}

TEST(Lifetime, TouchesWidenIt) {
  Lifetime life;
  EXPECT_FALSE(life.used());
  life.touch(5);
  EXPECT_TRUE(life.used());
  life.touch(9);
  life.touch(7);
  life.touch(3);
  EXPECT_EQ(life.first, 3);
  EXPECT_EQ(life.last, 9);
}

TEST(Lifetime, OverlapsWhereOneStepUsesBoth) {
  const Lifetime life{3, 5};
  EXPECT_TRUE(life.overlaps({5, 9}));
  EXPECT_TRUE(life.overlaps({0, 3}));
  EXPECT_TRUE(life.overlaps({4, 4}));
  EXPECT_FALSE(life.overlaps({6, 9}));
  EXPECT_FALSE(life.overlaps({0, 2}));
}

TEST(Arena, BuffersAliveTogetherNeverOverlapWhateverTheirLifetimes) {
  for (uint64_t trial = 0; trial < 200; ++trial) {
    const auto draw = [&](uint64_t index) { return random_uniform(random_key({trial}), index); };
    ArenaPlanner planner;
    std::vector<Wanted> wanted;
    const auto count = 1 + static_cast<uint64_t>(60 * draw(0));
    const int steps = 1 + static_cast<int>(40 * draw(1));
    for (uint64_t i = 0; i < count; ++i) {
      const int first = static_cast<int>(steps * draw(10 + 4 * i));
      const int longest = draw(12 + 4 * i) < 0.2 ? steps : 5;  // mostly short lives, a few long ones
      const int last = std::min(steps, first + static_cast<int>(longest * draw(11 + 4 * i)));
      const auto bytes = 1 + static_cast<int64_t>(std::pow(10.0, 4 * draw(13 + 4 * i)));
      wanted.push_back({bytes, {first, last}});
      planner.add(bytes, {first, last});
    }
    const int64_t size = planner.place();
    expect_sound(planner, wanted, size);
    // No arena can be smaller than its busiest step.
    int64_t busiest = 0;
    for (int step = 0; step <= steps; ++step) {
      int64_t sum = 0;
      for (const Wanted& buffer : wanted) {
        if (buffer.life.overlaps({step, step})) sum += buffer.bytes;
      }
      busiest = std::max(busiest, sum);
    }
    EXPECT_GE(size, busiest);
    if (HasFailure()) FAIL() << "trial " << trial;
  }
}

TEST(Arena, BuffersThatFollowEachOtherShareMemory) {
  ArenaPlanner planner;
  for (int step = 0; step < 100; ++step) planner.add(4096, {step, step + 1});
  EXPECT_EQ(planner.place(), 2 * 4096);
}

TEST(Arena, ALateLargeBufferTakesTheRoomOfEarlierSmallOnes) {
  ArenaPlanner planner;
  for (int i = 0; i < 4; ++i) planner.add(1024, {0, 1});
  planner.add(4096, {2, 3});
  EXPECT_EQ(planner.place(), 4096);
}

TEST(Arena, AnEmptyPlanIsEmpty) {
  ArenaPlanner planner;
  EXPECT_EQ(planner.place(), 0);
}

}  // namespace
}  // namespace brisk
