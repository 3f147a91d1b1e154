#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "base/runtime.h"
#include "ops/rotary/rotary_kernels.h"

namespace brisk::cpu {

namespace {

// Cosines and sines for positions 0 .. positions - 1, kept for the thread's life: one table per (K, theta).
struct Turns {
  int64_t positions = 0;
  std::vector<float> cosine, sine;  // [positions, K]
};

const Turns& turns_for(int64_t head_width, float theta, int64_t positions) {
  static thread_local std::map<std::pair<int64_t, float>, Turns> tables;
  Turns& turns = tables[{head_width, theta}];
  if (turns.positions >= positions) return turns;
  // Grown by half at least: generation asks for one position more each time.
  const int64_t grown = std::max({positions, turns.positions * 3 / 2, int64_t{64}});
  turns.cosine.resize(static_cast<size_t>(grown * head_width));
  turns.sine.resize(static_cast<size_t>(grown * head_width));
  for (int64_t c = 0; c < head_width; c += 2) {
    const double frequency = std::pow(double{theta}, -static_cast<double>(c) / static_cast<double>(head_width));
    for (int64_t p = turns.positions; p < grown; ++p) {
      const double angle = static_cast<double>(p) * frequency;
      const size_t at = static_cast<size_t>(p * head_width + c);
      turns.cosine[at] = turns.cosine[at + 1] = static_cast<float>(std::cos(angle));
      turns.sine[at + 1] = static_cast<float>(std::sin(angle));
      turns.sine[at] = -turns.sine[at + 1];
    }
  }
  turns.positions = grown;
  return turns;
}

// Below this many elements a second thread costs more than it saves (a hand-over takes some microseconds).
constexpr int64_t kRotaryElementsPerThread = 16384;

}  // namespace

void rotary(const Rotary& op) {
  if (!has_vector_kernels()) return ref::rotary(op);
  int32_t last = 0;
  for (int64_t row = 0; row < op.x.rows; ++row) last = std::max(last, op.rows.position[row]);
  const Turns& turns = turns_for(op.head_width, op.theta, int64_t{last} + 1);
  const auto rows = BRISK_ACTIVE_ISA(rotary_rows);
  const int64_t grain = std::max<int64_t>(1, kRotaryElementsPerThread / std::max<int64_t>(1, op.x.cols));
  thread_pool().for_range(op.x.rows, grain, [&](int64_t begin, int64_t end, int) {
    rows(op, {turns.cosine.data(), turns.sine.data()}, begin, end);
  });
}

}  // namespace brisk::cpu
