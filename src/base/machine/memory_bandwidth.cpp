// The speed of main memory, measured with the ThreadPool that trains.
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <vector>

#include "base/error.h"
#include "base/machine/machine.h"
#include "base/runtime.h"
#include "base/threads.h"

namespace brisk {

namespace {

using SteadyClock = std::chrono::steady_clock;

// One copy of each loop per register width; the loader picks the widest this machine has.
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)  // which would call its runtime before it is loaded
#define BRISK_WIDEST __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define BRISK_WIDEST
#endif

struct FreeMemory {
  void operator()(double* memory) const { std::free(memory); }
};

std::unique_ptr<double[], FreeMemory> allocate(int64_t count) {
  constexpr size_t kHugePage = size_t{1} << 21;
  const size_t bytes = (static_cast<size_t>(count) * sizeof(double) + kHugePage - 1) / kHugePage * kHugePage;
  void* memory = std::aligned_alloc(kHugePage, bytes);
  if (memory == nullptr)
    user_error("not enough memory to measure the bandwidth ({} bytes); close other programs", bytes);
  ::madvise(memory, bytes, MADV_HUGEPAGE);  // as the trainer's arena asks
  return std::unique_ptr<double[], FreeMemory>(static_cast<double*>(memory));
}

BRISK_WIDEST double sum(const double* a, int64_t begin, int64_t end) {
  constexpr int kSums = 32;  // independent sums, so that additions do not wait for each other
  double sums[kSums] = {};
  int64_t i = begin;
  for (; i + kSums <= end; i += kSums) {
    for (int j = 0; j < kSums; ++j) sums[j] += a[i + j];
  }
  double total = 0;
  for (const double part : sums) total += part;
  for (; i < end; ++i) total += a[i];
  return total;
}

BRISK_WIDEST void triad(const double* a, const double* b, double* __restrict c, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) c[i] = a[i] + 3.0 * b[i];
}

// GB/s, with `bytes` moved by each call of body: the best of several, since a ceiling is what an idle machine can do.
template <typename Body>
double best_rate(double bytes, const Body& body) {
  double best = 0;
  const SteadyClock::time_point start = SteadyClock::now();
  for (int round = 0; round < 5 || (round < 25 && SteadyClock::now() - start < std::chrono::milliseconds(200));
       ++round) {
    const SteadyClock::time_point before = SteadyClock::now();
    body();
    best = std::max(best, 1e-9 * bytes / std::chrono::duration<double>(SteadyClock::now() - before).count());
  }
  return best;
}

}  // namespace

MemoryBandwidth measure_memory_bandwidth() {
  constexpr int64_t kLeast = int64_t{128} << 20, kMost = int64_t{1} << 30;
  int64_t last_cache = 0;
  for (const Cache& cache : read_machine().caches) last_cache = std::max(last_cache, cache.bytes);
  int64_t all_bytes = std::clamp(4 * last_cache, kLeast, kMost);
  all_bytes = std::min(all_bytes, std::max<int64_t>(memory_available() / 4, int64_t{24} << 20));
  const int64_t count = all_bytes / 3 / static_cast<int64_t>(sizeof(double));

  const auto a_memory = allocate(count), b_memory = allocate(count), c_memory = allocate(count);
  double *a = a_memory.get(), *b = b_memory.get(), *c = c_memory.get();
  ThreadPool& pool = thread_pool();
  constexpr int64_t kGrain = 4096;
  // Each thread writes its own share first, so that its pages are local on NUMA machines.
  pool.for_range(count, kGrain, [&](int64_t begin, int64_t end, int) {
    std::fill(a + begin, a + end, 1.0);
    std::fill(b + begin, b + end, 2.0);
    std::fill(c + begin, c + end, 0.0);
  });

  MemoryBandwidth result;
  const double bytes = static_cast<double>(count) * sizeof(double);
  std::vector<double> totals(static_cast<size_t>(pool.size()) * 8);  // a cache line each
  result.read_gb_per_second = best_rate(bytes, [&] {
    pool.for_range(count, kGrain, [&](int64_t begin, int64_t end, int thread) {
      totals[static_cast<size_t>(thread) * 8] = sum(a, begin, end);
    });
    double total = 0;
    for (const double part : totals) total += part;
    BRISK_CHECK(total == static_cast<double>(count), "read {} of {}", total,
                count);  // keeps the reads from being optimised away
  });
  result.copy_gb_per_second = best_rate(2 * bytes, [&] {
    pool.for_range(count, kGrain, [&](int64_t begin, int64_t end, int) { std::copy(a + begin, a + end, c + begin); });
  });
  result.triad_gb_per_second = best_rate(3 * bytes, [&] {
    pool.for_range(count, kGrain, [&](int64_t begin, int64_t end, int) { triad(a, b, c, begin, end); });
  });
  BRISK_CHECK(c[0] == 7.0 && c[count - 1] == 7.0, "the triad did not run");
  return result;
}

}  // namespace brisk
