// What every transport must do, called by all ranks.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <exception>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "base/runtime.h"
#include "base/sum_tree.h"
#include "comm/communicator.h"

namespace brisk {

// Numbers whose sum depends on the order they are added in.
inline float number_of_rank(int rank, int64_t i) {
  const uint64_t random = mix64(static_cast<uint64_t>(rank) << 40 ^ static_cast<uint64_t>(i));
  return std::ldexp(static_cast<float>(random >> 40) - 8e6f, static_cast<int>(random % 40) - 20);
}

inline std::vector<int64_t> bounds_for_test(int ranks, int64_t count, bool with_empty) {
  std::vector<int64_t> bounds = {0};
  for (int rank = 1; rank < ranks; ++rank) {
    const bool empty = with_empty && rank == 1;
    bounds.push_back(empty ? 0 : count * rank / ranks / 16 * 16);
  }
  bounds.push_back(count);
  return bounds;
}

inline void check_sums(Communicator& ranks, int64_t count, bool with_empty) {
  const std::vector<int64_t> bounds = bounds_for_test(ranks.size(), count, with_empty);
  std::vector<float> data(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) data[static_cast<size_t>(i)] = number_of_rank(ranks.rank(), i);
  ranks.sum_ranges(data.data(), bounds);
  const auto expected = [&](int64_t i) {
    std::vector<float> parts;
    for (int rank = 0; rank < ranks.size(); ++rank) parts.push_back(number_of_rank(rank, i));
    sum_tree(ranks.size(),
             [&](int64_t a, int64_t b) { parts[static_cast<size_t>(a)] += parts[static_cast<size_t>(b)]; });
    return parts.front();
  };
  for (int64_t i = bounds[static_cast<size_t>(ranks.rank())]; i < bounds[static_cast<size_t>(ranks.rank()) + 1]; ++i) {
    BRISK_CHECK(data[static_cast<size_t>(i)] == expected(i), "rank {}: sum {} of {} is {}, expected {}", ranks.rank(),
                i, count, data[static_cast<size_t>(i)], expected(i));
  }
  std::vector<int64_t> in_bytes;
  for (const int64_t bound : bounds) in_bytes.push_back(4 * bound);
  ranks.share_ranges(data.data(), in_bytes);
  for (int64_t i = 0; i < count; ++i)
    BRISK_CHECK(data[static_cast<size_t>(i)] == expected(i), "rank {}: shared {} of {}", ranks.rank(), i, count);
}

// What is summed piece by piece, by a thread of its own that sleeps while it waits, has the bits of what is summed at once.
inline void check_buckets(Communicator& ranks, int64_t count, int64_t bucket) {
  const std::vector<int64_t> bounds = bounds_for_test(ranks.size(), count, true);
  std::vector<float> whole(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) whole[static_cast<size_t>(i)] = number_of_rank(ranks.rank(), i);
  std::vector<float> pieces = whole;
  ranks.sum_ranges(whole.data(), bounds);
  std::string problem;
  const int64_t sent = ranks.bytes_sent();
  std::thread thread([&] {
    Runtime runtime({.threads = 1});
    const RuntimeScope scope(runtime);
    const BackgroundCollectives background;
    try {
      for (int64_t begin = 0; begin < count; begin += bucket) {
        std::vector<int64_t> of_bucket = bounds;
        for (int64_t& bound : of_bucket) bound = std::clamp(bound, begin, std::min(begin + bucket, count));
        ranks.sum_ranges(pieces.data(), of_bucket);
      }
    } catch (const std::exception& error) {
      problem = error.what();
    }
  });
  thread.join();
  BRISK_CHECK(problem.empty(), "buckets of {}: {}", bucket, problem);
  const auto rank = static_cast<size_t>(ranks.rank());
  for (auto i = static_cast<size_t>(bounds[rank]); i < static_cast<size_t>(bounds[rank + 1]); ++i)
    BRISK_CHECK(pieces[i] == whole[i], "rank {}: sum {} of buckets of {}", rank, i, bucket);
  const int64_t own = bounds[rank + 1] - bounds[rank];
  BRISK_CHECK(ranks.bytes_sent() - sent == 4 * (count - own), "rank {} sent {} bytes", rank, ranks.bytes_sent() - sent);
}

inline void check_collecting(Communicator& ranks, int64_t count, int root) {
  const std::vector<int64_t> bounds = bounds_for_test(ranks.size(), count, true);
  std::vector<char> data(static_cast<size_t>(count), static_cast<char>(ranks.rank() + 1));
  ranks.collect_ranges(data.data(), bounds, root);
  for (int rank = 0; rank < ranks.size(); ++rank) {
    for (int64_t i = bounds[static_cast<size_t>(rank)]; i < bounds[static_cast<size_t>(rank) + 1]; ++i) {
      const int wanted = ranks.rank() == root ? rank + 1 : ranks.rank() + 1;
      BRISK_CHECK(data[static_cast<size_t>(i)] == wanted, "rank {}: byte {} of {}", ranks.rank(), i, count);
    }
  }
}

inline void check_collectives(Communicator& ranks) {
  const std::vector<double> all = ranks.gather(1.5 + ranks.rank());
  for (int rank = 0; rank < ranks.size(); ++rank)
    BRISK_CHECK(all[static_cast<size_t>(rank)] == 1.5 + rank, "gathered from rank {}", rank);
  BRISK_CHECK(ranks.sum(1) == ranks.size(), "the sum of ones");
  BRISK_CHECK(ranks.first(7.0 + ranks.rank()) == 7.0, "rank 0's number");
  const std::vector<std::string> texts = ranks.gather(std::string(static_cast<size_t>(ranks.rank()), 'x'));
  for (int rank = 0; rank < ranks.size(); ++rank)
    BRISK_CHECK(std::ssize(texts[static_cast<size_t>(rank)]) == rank, "the text of rank {}", rank);
  // Less than a window of the transport, more, many.
  for (const int64_t count : {1, 1000, 70'000, 300'000}) check_sums(ranks, count, false);
  check_sums(ranks, 100'000, true);
  if (ranks.serves_any_thread()) {
    check_buckets(ranks, 100'000, 1024);
    check_buckets(ranks, 1'500'000, 700'000);
  }
  check_collecting(ranks, 2'200'000, 0);
  check_collecting(ranks, 100, ranks.size() - 1);
  for (int i = 0; i < 500; ++i) BRISK_CHECK(ranks.sum(i) == i * ranks.size(), "turn {}", i);
  ranks.barrier();
}

}  // namespace brisk
