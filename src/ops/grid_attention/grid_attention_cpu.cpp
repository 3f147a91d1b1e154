#include <algorithm>
#include <cstring>

#include "base/rounding.h"
#include "base/runtime.h"
#include "ops/cpu/thread_scratch.h"
#include "ops/grid_attention/grid_attention_kernels.h"

namespace brisk::cpu {

namespace {

// Heads of one region that a thread takes together: their columns are neighbours.
constexpr int64_t kHeadsOfATask = 4;

void clear_rows_of_no_sequence(const RowSet& rows, const Tensor& t) {
  const int64_t size = size_of(t.type);
  for (int64_t row = rows.starts[rows.sequences]; row < t.rows; ++row) {
    std::memset(t.as<char>() + row * t.stride * size, 0, static_cast<size_t>(t.cols * size));
  }
}

bool is_empty(const RowSet& rows, int64_t sequence) { return rows.starts[sequence + 1] == rows.starts[sequence]; }

// Of all sequences' regions, one after the other.
GridTask region_at(int64_t number, int64_t regions) {
  return {number / regions, static_cast<int32_t>(number % regions)};
}

}  // namespace

void grid_attention_forward(const GridAttentionForward& op) {
  if (!has_vector_kernels()) return ref::grid_attention_forward(op);
  clear_rows_of_no_sequence(op.rows, op.y);
  const auto run = BRISK_ACTIVE_ISA(grid_attention_forward_region);
  const int64_t scratch_bytes = BRISK_ACTIVE_ISA(grid_attention_scratch)(op.shape);
  const int64_t blocks = divide_up(op.shape.heads, kHeadsOfATask), regions = op.shape.windows.regions();
  thread_pool().for_range(op.rows.sequences * regions * blocks, 1, [&](int64_t begin, int64_t end, int) {
    void* scratch = thread_scratch(scratch_bytes);
    for (int64_t task = begin; task < end; ++task) {
      const int64_t at = task / blocks, head = task % blocks * kHeadsOfATask;
      const GridTask next = region_at(at + 1, regions);
      if (is_empty(op.rows, at / regions)) continue;
      run(op, region_at(at, regions), task + blocks < end && !is_empty(op.rows, next.sequence) ? &next : nullptr, head,
          std::min(op.shape.heads, head + kHeadsOfATask), scratch);
    }
  });
}

void grid_attention_backward(const GridAttentionBackward& op) {
  if (!has_vector_kernels()) return ref::grid_attention_backward(op);
  const GridAttentionForward& forward = op.forward;
  clear_rows_of_no_sequence(forward.rows, op.dqkv);
  const auto run = BRISK_ACTIVE_ISA(grid_attention_backward_region);
  const int64_t scratch_bytes = BRISK_ACTIVE_ISA(grid_attention_scratch)(forward.shape);
  const int64_t heads = forward.shape.heads, regions = forward.shape.windows.regions();
  const int64_t all = forward.rows.sequences * regions;
  const int64_t parts = op.dbias ? grid_bias_parts(forward.shape, forward.rows.sequences) : all;
  const int64_t blocks = divide_up(heads, kHeadsOfATask);
  thread_pool().for_range(parts * blocks, 1, [&](int64_t begin, int64_t end, int) {
    void* scratch = thread_scratch(scratch_bytes);
    for (int64_t task = begin; task < end; ++task) {
      const int64_t part = task / blocks, head = task % blocks * kHeadsOfATask;
      const int64_t end_head = std::min(heads, head + kHeadsOfATask);
      for (int64_t h = head; op.dbias && h < end_head; ++h) {
        float* dbias = op.dbias_parts.f32() + (part * heads + h) * op.dbias_parts.stride;
        std::fill(dbias, dbias + op.dbias.cols, 0.0f);
      }
      const int64_t last = (part + 1) * all / parts;
      for (int64_t at = part * all / parts; at < last; ++at) {
        const GridTask next = region_at(at + 1, regions);
        if (is_empty(forward.rows, at / regions)) continue;
        run(op, region_at(at, regions), at + 1 < last && !is_empty(forward.rows, next.sequence) ? &next : nullptr, head,
            end_head, part, scratch);
      }
    }
  });
  if (!op.dbias) return;
  thread_pool().for_range(heads, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t head = begin; head < end; ++head) {
      float* sums = op.dbias.f32() + head * op.dbias.stride;
      std::fill(sums, sums + op.dbias.cols, 0.0f);
      for (int64_t part = 0; part < parts; ++part) {
        const float* of_part = op.dbias_parts.f32() + (part * heads + head) * op.dbias_parts.stride;
        for (int64_t c = 0; c < op.dbias.cols; ++c) sums[c] += of_part[c];
      }
    }
  });
}

int64_t grid_attention_workspace_bytes(const GridAttentionShape& shape) {
  return has_vector_kernels() ? thread_pool().size() * BRISK_ACTIVE_ISA(grid_attention_scratch)(shape) : 0;
}

}  // namespace brisk::cpu
