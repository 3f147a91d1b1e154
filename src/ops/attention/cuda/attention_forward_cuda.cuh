// The softmax that attention forward makes of scores in registers, as the tensor cores leave them.
#pragma once

#include <cmath>

#include "ops/attention/cuda/attention_cuda.cuh"

namespace brisk::cuda {

constexpr int kForwardKeys = 64;  // of a tile
constexpr float kLog2E = 1.44269504f;

// The two rows of a 16-row product that a lane has parts of.
struct RowPair {
  float largest[2] = {-INFINITY, -INFINITY};
  float sum[2] = {};  // of this lane's columns
  uint32_t row_key[2] = {};
  int seen[2] = {};
};

// Scores become weights relative to the largest so far; what was summed before shrinks accordingly. Of a half tile the
// second half of the keys is not weighed, and must not be used.
template <int kWidth, bool kDropout>
__device__ void weigh(float (&scores)[kForwardKeys / 8][4], RowPair& rows, float (&out)[kWidth / 8][4],
                      float scale_log2, int key, bool masked, const Draws& draws, bool half_tile = false) {
  const int lane = threadIdx.x % 32;
  if (masked) {
#pragma unroll
    for (int n = 0; n < kForwardKeys / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if (key + n * 8 + lane % 4 * 2 + i % 2 >= rows.seen[i / 2]) scores[n][i] = -INFINITY;
      }
    }
  }
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float highest = rows.largest[half];
#pragma unroll
    for (int n = 0; n < kForwardKeys / 8; ++n) {
      if (n >= kForwardKeys / 16 && half_tile) continue;
#pragma unroll
      for (int i = 0; i < 2; ++i) highest = fmaxf(highest, scores[n][2 * half + i]);
    }
    highest = fmaxf(highest, __shfl_xor_sync(~0u, highest, 1));
    highest = fmaxf(highest, __shfl_xor_sync(~0u, highest, 2));
    const float from = highest == -INFINITY ? 0.0f : highest * scale_log2;
    const float shrink = exp2_fast(rows.largest[half] * scale_log2 - from);
    rows.largest[half] = highest;
    float sum = 0;
    [[maybe_unused]] KeptPair kept[2];  // of columns 8 apart
#pragma unroll
    for (int n = 0; n < kForwardKeys / 8; ++n) {
      if (n >= kForwardKeys / 16 && half_tile) continue;
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        float& score = scores[n][2 * half + i];
        score = exp2_fast(score * scale_log2 - from);
        sum += score;
        if constexpr (kDropout) {
          if (n % 2 == 0) kept[i] = draws.kept(rows.row_key[half], key + n * 8 + lane % 4 * 2 + i);
          if (!(n % 2 == 0 ? kept[i].here : kept[i].further)) score = 0;
        }
      }
    }
    rows.sum[half] = rows.sum[half] * shrink + sum;
#pragma unroll
    for (int n = 0; n < kWidth / 8; ++n) {
      out[n][2 * half] *= shrink;
      out[n][2 * half + 1] *= shrink;
    }
  }
}

// Where the GPU is a Hopper and heads are at most 64 wide (attention_forward_hopper.cu); false: nothing was done.
bool attention_forward_hopper(const AttentionForward& op, int groups);

}  // namespace brisk::cuda
