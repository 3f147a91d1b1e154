#include <algorithm>
#include <chrono>

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
  constexpr double kTrialSeconds = 0.004;
  constexpr int kTrials = 12;
  // Rounds of a trial, from a short burst: it also wakes the units.
  int64_t rounds = 20000;
  const double start = seconds_now();
  burst(arithmetic, rounds);
  rounds = std::max<int64_t>(
      rounds, static_cast<int64_t>(static_cast<double>(rounds) * kTrialSeconds / (seconds_now() - start)));
  double best = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    const double begin = seconds_now();
    double operations = 0;
    team.run([&](int thread) {
      const double own = burst(arithmetic, rounds);
      if (thread == 0) operations = own;
    });
    best = std::max(best, operations * team.size() / (seconds_now() - begin) * 1e-9);
  }
  return best;
}

}  // namespace brisk
