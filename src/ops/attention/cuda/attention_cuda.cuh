// What the attention kernels share: where a sequence's queries and keys lie, dropout's draws, and rows of no sequence.
// A block has a tile of queries (or keys), a head and a sequence: blockIdx x, y, z. The last z is no sequence: its
// blocks clear the rows beyond the last one.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "ops/attention/attention.h"
#include "ops/cuda/cuda_elements.cuh"
#include "ops/cuda/cuda_launch.cuh"

namespace brisk::cuda {

// In 32 bits: blocks of short sequences are many, and spend much of their time here.
struct AttentionSpan {
  int first_query, queries, first_key, keys;

  // Query i sees keys 0 .. seen_by(i) - 1.
  __device__ int seen_by(int query, bool causal) const { return causal ? max(0, keys - queries + query + 1) : keys; }
  // Key j is seen by queries from this one on.
  __device__ int first_seeing(int key, bool causal) const { return causal ? max(0, key - (keys - queries)) : 0; }
};

__device__ inline AttentionSpan attention_span(const AttentionForward& op, unsigned sequence) {
  const int begin = op.queries.starts[sequence], first_key = op.k_begin[sequence];
  return {begin, op.queries.starts[sequence + 1] - begin, first_key, op.k_end[sequence] - first_key};
}

// How many heads of queries look at a head of keys, and at which one.
__device__ inline int group_of(const AttentionShape& shape) {
  if (shape.heads == shape.kv_heads) return 1;
  return static_cast<int>(shape.heads) / static_cast<int>(shape.kv_heads);
}
__device__ inline int kv_head_of(const AttentionShape& shape, int head) {
  return shape.heads == shape.kv_heads ? head : head / group_of(shape);
}

// The key of the draws of one query row and head (ops/attention/attention.h: attention_dropout).
__device__ inline uint32_t attention_row_key(const Draws& draws, int64_t head, int64_t row) {
  if (draws.threshold == 0) return 0;
  return random_row_key(mix64(mix64(draws.drawn_key()) ^ static_cast<uint64_t>(head)),
                        static_cast<uint32_t>(draws.sequence[row]), static_cast<uint32_t>(draws.position[row]));
}

// Zeros in the columns of one head, rows from `begin` on; the blocks of x share them.
template <typename T>
__device__ void clear_head_rows(const Tensor& t, int64_t begin, int64_t head, int64_t width) {
  T* data = static_cast<T*>(t.data);
  const int64_t count = (t.rows - begin) * width;
  for (int64_t at = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; at < count;
       at += static_cast<int64_t>(gridDim.x) * blockDim.x) {
    store_one(data + (begin + at / width) * t.stride + head * width + at % width, 0.0f);
  }
}

// Whether heads are rows of this type and of whole 16 bytes, at most 128 wide.
inline bool fits_tensor_cores(const AttentionForward& op, DType type = DType::bf16) {
  const auto fits = [type](const Tensor& t) { return t.type == type && in_eights(t); };
  return op.shape.head_width % 8 == 0 && op.shape.head_width <= 128 && fits(op.q) && fits(op.k) && fits(op.v) &&
         fits(op.y);
}

// Heads of 2, 4 or 8 columns, whose rows lie whole (attention_narrow_cuda.cu).
bool has_narrow_heads(const AttentionForward& op);
bool has_narrow_heads(const AttentionBackward& op);
void attention_forward_narrow(const AttentionForward& op);
void attention_backward_narrow(const AttentionBackward& op);

}  // namespace brisk::cuda
