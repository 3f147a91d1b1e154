// A block takes a few rows: it turns the angles of their positions into cosines and sines once, for all heads. An angle
// is a product in double, taken modulo a full turn: in float, position 1000 would be off by 1e-4.
#include <cmath>

#include "base/rounding.h"
#include "ops/cuda/cuda_elements.cuh"
#include "ops/cuda/cuda_launch.cuh"
#include "ops/rotary/rotary.h"

namespace brisk::cuda {

namespace {

constexpr int kThreads = 256;
constexpr int kRows = 16;        // a block
constexpr int kMostPairs = 128;  // of a head

// How far a pair turns from one position to the next, in full turns.
struct PairTurns {
  double v[kMostPairs];
};

template <typename T, int kCount>
__global__ void rotary_kernel(Rotary op, PairTurns turns) {
  __shared__ float cosines[kRows][kMostPairs], sines[kRows][kMostPairs];
  const int pairs = static_cast<int>(op.head_width / 2);
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kRows;
  const int rows = static_cast<int>(min(static_cast<int64_t>(kRows), op.x.rows - first));
  for (int at = threadIdx.x; at < rows * pairs; at += kThreads) {
    const int row = at / pairs, pair = at % pairs;
    const double turn = static_cast<double>(op.rows.position[first + row]) * turns.v[pair];
    const float half_turns = 2.0f * static_cast<float>(turn - rint(turn));
    cosines[row][pair] = cospif(half_turns);
    sines[row][pair] = op.inverse ? -sinpif(half_turns) : sinpif(half_turns);
  }
  __syncthreads();
  const int per_row = static_cast<int>(op.x.cols / kCount);
  for (int at = threadIdx.x; at < rows * per_row; at += kThreads) {
    const int row = at / per_row, column = at % per_row * kCount;
    Floats<kCount> x = load<kCount>(static_cast<const T*>(op.x.data) + (first + row) * op.x.stride + column);
    if (column < op.rotated) {
      const int pair = column % static_cast<int>(op.head_width) / 2;
#pragma unroll
      for (int i = 0; i < kCount; i += 2) {
        const float cosine = cosines[row][pair + i / 2], sine = sines[row][pair + i / 2];
        const float even = x.v[i], odd = x.v[i + 1];
        x.v[i] = even * cosine - odd * sine;
        x.v[i + 1] = even * sine + odd * cosine;
      }
    }
    store(static_cast<T*>(op.y.data) + (first + row) * op.y.stride + column, x);
  }
}

}  // namespace

void rotary(const Rotary& op) {
  expect(op.x.type == op.y.type, "rotary takes and gives one type");
  expect(op.head_width / 2 <= kMostPairs && op.head_width % 2 == 0 && op.x.cols % 2 == 0,
         "rotary turns pairs, of heads at most 256 wide");
  PairTurns turns{};
  for (int64_t pair = 0; pair < op.head_width / 2; ++pair) {
    const double share = 2.0 * static_cast<double>(pair) / static_cast<double>(op.head_width);
    turns.v[pair] = std::pow(double{op.theta}, -share) / 6.283185307179586476925;
  }
  const bool eights = in_eights(op.x) && in_eights(op.y) && op.head_width % 8 == 0;
  const Launch shape{.blocks = divide_up(op.x.rows, kRows), .threads = kThreads};
  with_any_type(op.x.type, [&](auto type) {
    if (eights) {
      launch(rotary_kernel<decltype(type), 8>, shape, op, turns);
    } else {
      launch(rotary_kernel<decltype(type), 2>, shape, op, turns);
    }
  });
}

}  // namespace brisk::cuda
