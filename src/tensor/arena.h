// Where buffers with known lifetimes go in one arena: two buffers that are never alive together may share memory.
//
//   ArenaPlanner planner;
//   const int early = planner.add(4096, {0, 3}), late = planner.add(4096, {4, 9});
//   planner.place();                                  // 4096: the size of the arena
//   planner.offset(late) == planner.offset(early);    // true
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace brisk {

// From the first to the last step (inclusive) that touches a buffer.
struct Lifetime {
  int first = -1;
  int last = -1;
  bool used() const { return first >= 0; }
  void touch(int time) {
    first = used() ? std::min(first, time) : time;
    last = std::max(last, time);
  }
  bool overlaps(const Lifetime& other) const { return first <= other.last && other.first <= last; }
};

class ArenaPlanner {
 public:
  int add(int64_t bytes, Lifetime life);
  int64_t place();  // gives every buffer its offset; returns the arena's size
  int64_t offset(int buffer) const { return buffers_[static_cast<size_t>(buffer)].offset; }

 private:
  struct Planned {
    int64_t bytes = 0;
    Lifetime life;
    int64_t offset = -1;
  };
  std::vector<Planned> buffers_;
};

}  // namespace brisk
