#include "bench/rank_transfers.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>

#include "comm/communicator.h"
#include "tensor/dtype.h"

namespace brisk {

namespace {

using TransferClock = std::chrono::steady_clock;

constexpr int64_t kLeastBytes = int64_t{4} << 10;
constexpr double kSecondsOfSize = 0.12;
constexpr int64_t kLeastRepeats = 5, kMostRepeats = 500;

// Even ranges, in elements of so many bytes.
std::vector<int64_t> even_bounds(int64_t elements, int ranks, int64_t element_bytes) {
  std::vector<int64_t> bounds;
  for (int64_t rank = 0; rank <= ranks; ++rank) bounds.push_back(element_bytes * (elements * rank / ranks));
  return bounds;
}

double seconds_of(Communicator& ranks, const std::function<void()>& operation) {
  ranks.barrier();
  const auto start = TransferClock::now();
  operation();
  return std::chrono::duration<double>(TransferClock::now() - start).count();
}

// The median of the slowest rank's times. How often is decided by the first rank, after one that warms up.
double median_seconds(Communicator& ranks, const std::function<void()>& operation) {
  operation();
  const double one = ranks.first(seconds_of(ranks, operation));
  const auto repeats = static_cast<size_t>(
      std::clamp(static_cast<int64_t>(kSecondsOfSize / std::max(one, 1e-9)), kLeastRepeats, kMostRepeats));
  std::vector<double> own, all(repeats * static_cast<size_t>(ranks.size()));
  for (size_t i = 0; i < repeats; ++i) own.push_back(seconds_of(ranks, operation));
  ranks.all_gather(own.data(), all.data(), static_cast<int64_t>(repeats * sizeof(double)));
  std::vector<double> slowest(repeats, 0.0);
  for (size_t i = 0; i < all.size(); ++i) slowest[i % repeats] = std::max(slowest[i % repeats], all[i]);
  std::nth_element(slowest.begin(), slowest.begin() + static_cast<std::ptrdiff_t>(repeats / 2), slowest.end());
  return slowest[repeats / 2];
}

}  // namespace

RankTransfers measure_transfers(Communicator& ranks, int64_t most_bytes) {
  RankTransfers measured{.ranks = ranks.size(), .transport = ranks.transport()};
  measured.barrier_seconds = median_seconds(ranks, [&] { ranks.barrier(); });
  double own = 0;
  std::vector<double> all(static_cast<size_t>(ranks.size()));
  measured.gather_seconds = median_seconds(ranks, [&] { ranks.all_gather(&own, all.data(), sizeof(double)); });

  // As gradients are when a backward pass has ended: the larger ones are not in a cache.
  std::vector<float> arena(static_cast<size_t>(2 * most_bytes / size_of(DType::f32)), 0.0F);
  const double sent = static_cast<double>(ranks.size() - 1) / ranks.size();
  for (int64_t bytes = kLeastBytes; bytes <= most_bytes; bytes *= 4) {
    const int64_t elements = bytes / size_of(DType::f32);
    int64_t place = 0;
    const auto next = [&] {
      float* const data = arena.data() + place;
      place = (place + elements) % (std::ssize(arena) - elements + 1) / 16 * 16;
      return data;
    };
    const std::vector<int64_t> in_floats = even_bounds(elements, ranks.size(), 1),
                               in_bytes = even_bounds(elements, ranks.size(), size_of(DType::f32));
    const auto add = [&](std::vector<TransferTime>& times, const std::function<void()>& operation) {
      const double seconds = median_seconds(ranks, operation);
      times.push_back({bytes, seconds, seconds > 0 ? sent * static_cast<double>(bytes) / seconds : 0});
    };
    add(measured.sum, [&] { ranks.sum_ranges(next(), in_floats); });
    add(measured.share, [&] { ranks.share_ranges(next(), in_bytes); });
  }
  return measured;
}

}  // namespace brisk
