#include <algorithm>
#include <chrono>
#include <numeric>
#include <vector>

#include "base/runtime.h"
#include "base/threads.h"
#include "ops/peak/peak.h"
#include "ops/peak/peak_kernels.h"

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

PeakMeter::PeakMeter(Arithmetic arithmetic) : arithmetic_(arithmetic) {}
PeakMeter::PeakMeter(Device& gpu, Arithmetic arithmetic)
    : arithmetic_(arithmetic), on_gpu_(true), rates_{gpu_product_gflops(gpu, arithmetic)} {}

// Short bursts that all threads begin together; a burst counts what they reached side by side (two threads of one core
// do not reach twice one thread's rate).
void PeakMeter::sample() {
  if (on_gpu_) return;
  if (arithmetic_ == Arithmetic::bf16 && !has_bf16_instructions(active_isa())) return;
  ThreadPool& pool = thread_pool();
  constexpr double kBurstSeconds = 0.001;
  constexpr int kBursts = 3;
  std::vector<double> rates(static_cast<size_t>(pool.size()), 0.0);
  double sum = 0;
  pool.run([&](int thread) {
    for (int trial = 0; trial < kBursts; ++trial) {
      pool.barrier();
      const double start = seconds_now();
      double operations = 0, seconds = 0;
      while (seconds < kBurstSeconds) {
        operations += burst(arithmetic_, 5000);
        seconds = seconds_now() - start;
      }
      rates[static_cast<size_t>(thread)] = operations / seconds * 1e-9;
      pool.barrier();
      if (thread == 0) sum += std::accumulate(rates.begin(), rates.end(), 0.0);
    }
  });
  rates_.push_back(sum / kBursts);
}

double PeakMeter::gflops() const {
  if (rates_.empty()) return 0;
  std::vector<double> rates = rates_;
  std::nth_element(rates.begin(), rates.begin() + static_cast<std::ptrdiff_t>(rates.size() / 2), rates.end());
  return static_cast<double>(processes_) * rates[rates.size() / 2];
}

double measured_peak_gflops(Arithmetic arithmetic) {
  PeakMeter meter(arithmetic);
  for (int i = 0; i < 20; ++i) meter.sample();
  return meter.gflops();
}

}  // namespace brisk
