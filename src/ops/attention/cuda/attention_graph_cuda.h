// Attention as cuDNN's graphs: the operations that its fused engines recognise.
//
//   const AttentionLayout layout = {.batch = 32, .heads = 12, .kv_heads = 12, .length = 1024, .head_width = 64, ...};
//   AttentionForwardPlan plan = plan_attention_forward(layout);     // CudnnRefusal if no engine supports it
//   plan.plan.run({{plan.q, op.q.data}, ...}, workspace);
#pragma once

#include <compare>

#include "ops/cuda/cudnn_graph_cuda.h"

namespace brisk::cuda {

// What a plan is made for. Sequence s begins at row s * length of every tensor, or where offsets say.
struct AttentionLayout {
  cudnnDataType_t type = CUDNN_DATA_BFLOAT16;  // or half: of everything but sums
  int64_t batch = 0;                           // sequences
  int64_t length = 0;                          // of all of them, or of the longest
  int64_t heads = 0, kv_heads = 0, head_width = 0;
  int64_t q_stride = 0, kv_stride = 0;  // elements from row to row
  int64_t y_stride = 0;
  bool causal = false;
  bool ragged = false;     // lengths and offsets lie on the GPU
  bool keeps_sums = true;  // forward: the log-sum-exp is wanted
  // Backward:
  int64_t dq_stride = 0, dkv_stride = 0, dy_stride = 0;
  bool deterministic = true;

  auto operator<=>(const AttentionLayout&) const = default;
};

// Ids of the tensors in a plan; those of offsets and lengths are 0 where sequences have the same length.
struct AttentionForwardPlan {
  int64_t q = 0, k = 0, v = 0, y = 0, scale = 0;
  int64_t least = 0;  // a number that takes the place of scores that are masked
  int64_t sums = 0;   // log-sum-exp [batch, heads, length]; ragged: [rows, heads]
  int64_t lengths = 0, q_offsets = 0, kv_offsets = 0, y_offsets = 0, sums_offsets = 0;
  CudnnPlan plan;
};

struct AttentionBackwardPlan {
  int64_t q = 0, k = 0, v = 0, y = 0, dy = 0, sums = 0, scale = 0, least = 0, one = 0;
  int64_t dq = 0, dk = 0, dv = 0;
  int64_t products = 0;  // scratch [batch, heads, length] f32
  int64_t dq_sums = 0;   // scratch [batch, heads, length, head_width] f32, where it is not deterministic
  int64_t lengths = 0, q_offsets = 0, kv_offsets = 0, y_offsets = 0, sums_offsets = 0;
  int64_t dq_offsets = 0, dkv_offsets = 0, dy_offsets = 0;
  CudnnPlan plan;
};

AttentionForwardPlan plan_attention_forward(const AttentionLayout& layout);
AttentionBackwardPlan plan_attention_backward(const AttentionLayout& layout);

}  // namespace brisk::cuda
