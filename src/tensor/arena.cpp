#include "tensor/arena.h"

#include <numeric>

namespace brisk {

namespace {
constexpr int64_t kAlignment = 64;  // a cache line, and a full AVX-512 vector
}

int ArenaPlanner::add(int64_t bytes, Lifetime life) {
  buffers_.push_back({(bytes + kAlignment - 1) / kAlignment * kAlignment, life});
  return static_cast<int>(buffers_.size()) - 1;
}

// Largest first, each at the lowest offset where no buffer alive at the same time lies: for the chains of a transformer
// this comes within a few percent of the busiest moment's sum.
int64_t ArenaPlanner::place() {
  std::vector<size_t> order(buffers_.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return buffers_[a].bytes > buffers_[b].bytes; });
  struct Placed {  // side by side in memory: a model of 1,000 layers has 20,000 buffers, and each is compared with most
    int64_t offset, end;
    Lifetime life;
  };
  std::vector<Placed> by_offset;
  by_offset.reserve(buffers_.size());
  int64_t size = 0;
  for (const size_t i : order) {
    Planned& buffer = buffers_[i];
    int64_t offset = 0;
    for (const Placed& placed : by_offset) {
      if (!placed.life.overlaps(buffer.life)) continue;
      if (offset + buffer.bytes <= placed.offset) break;
      offset = std::max(offset, placed.end);
    }
    buffer.offset = offset;
    size = std::max(size, offset + buffer.bytes);
    by_offset.insert(std::upper_bound(by_offset.begin(), by_offset.end(), offset,
                                      [](int64_t at, const Placed& placed) { return at < placed.offset; }),
                     {offset, offset + buffer.bytes, buffer.life});
  }
  return size;
}

}  // namespace brisk
