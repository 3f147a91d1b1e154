#include <algorithm>
#include <chrono>
#include <numeric>
#include <vector>

#include "base/threads.h"
#include "ops/peak.h"
#include "ops/peak_kernels.h"

namespace brisk {

namespace {

// Without vector kernels: what the compiler makes of plain loops.
double plain_burst(int64_t rounds) {
  constexpr int kChains = 32;
  float acc[kChains] = {};
  for (int64_t round = 0; round < rounds; ++round) {
    for (float& a : acc) a = a * 0.5f + 0.5f;
    asm volatile("" : : "r"(acc) : "memory");
  }
  return 2.0 * kChains * static_cast<double>(rounds);
}

double burst(Arithmetic arithmetic, int64_t rounds) {
  if (has_vector_kernels()) return BRISK_ACTIVE_ISA(multiply_add_burst)(arithmetic, rounds);
  return arithmetic == Arithmetic::f32 ? plain_burst(rounds) : 0;
}

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

double measured_peak_gflops(Arithmetic arithmetic) {
  if (arithmetic == Arithmetic::bf16 && !has_bf16_instructions(active_isa())) return 0;
  Team& team = Team::instance();
  // Short bursts that all threads begin together; a trial counts what they reached side by side (two threads of one
  // core do not reach twice one thread's rate), and the best trial counts, so that moments in which another program
  // held a core do not.
  constexpr double kBurstSeconds = 0.001;
  constexpr int kTrials = 60;
  std::vector<double> rates(static_cast<size_t>(team.size()), 0.0);
  double best = 0;
  team.run([&](int thread) {
    int64_t rounds = 5000;
    for (int trial = 0; trial < kTrials; ++trial) {
      team.barrier();
      const double start = seconds_now();
      const double operations = burst(arithmetic, rounds);
      const double seconds = seconds_now() - start;
      rates[static_cast<size_t>(thread)] = operations / seconds * 1e-9;
      if (seconds < kBurstSeconds / 2) rounds *= 2;
      team.barrier();
      if (thread == 0) best = std::max(best, std::accumulate(rates.begin(), rates.end(), 0.0));
    }
  });
  return best;
}

}  // namespace brisk
