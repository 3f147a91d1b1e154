#include <algorithm>

#include "base/rounding.h"
#include "ops/attention/cuda/attention_rows_cuda.h"
#include "ops/cuda/cuda_elements.cuh"
#include "ops/cuda/cuda_launch.cuh"

namespace brisk::cuda {

namespace {

constexpr int kThreads = 256;

__global__ void place_sequences_kernel(const RowSet rows, int64_t batch, int64_t apart, const SequencePlaces places) {
  const int64_t s = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (s > batch) return;
  const int64_t start = rows.starts[min(s, rows.sequences)];
  for (int i = 0; i < places.count; ++i) {
    places.offsets[i * apart + s] = static_cast<int32_t>(start * places.strides[i]);
  }
  if (s < batch) {
    places.lengths[s] = s < rows.sequences ? static_cast<int32_t>(rows.starts[s + 1] - start) : 0;
  }
}

__global__ void clear_spare_rows_kernel(const RowSet rows, const Tensor t) {
  const int64_t first = rows.starts[rows.sequences], eights = t.cols / 8;
  const int64_t count = (t.rows - first) * eights;
  for (int64_t at = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; at < count;
       at += static_cast<int64_t>(gridDim.x) * kThreads) {
    bf16_t* row = static_cast<bf16_t*>(t.data) + (first + at / eights) * t.stride;
    *reinterpret_cast<uint4*>(row + at % eights * 8) = uint4{};
  }
}

// A tile of 32 rows and up to 32 heads through shared memory.
template <bool kByHead>
__global__ void turn_sums_kernel(const int64_t length, const int64_t heads, float* sums, const int64_t stride,
                                 float* by_head) {
  __shared__ float tile[32][33];
  const int64_t sequence = blockIdx.y, row = static_cast<int64_t>(blockIdx.x) * 32, head = int64_t{blockIdx.z} * 32;
  const auto in_sums = [&](int r, int h) { return sums + (sequence * length + row + r) * stride + head + h; };
  const auto in_heads = [&](int r, int h) { return by_head + (sequence * heads + head + h) * length + row + r; };
  const int x = threadIdx.x % 32;
  for (int y = threadIdx.x / 32; y < 32; y += kThreads / 32) {
    if (kByHead) {
      if (row + y < length && head + x < heads) tile[y][x] = *in_sums(y, x);
    } else {
      if (row + x < length && head + y < heads) tile[x][y] = *in_heads(x, y);
    }
  }
  __syncthreads();
  for (int y = threadIdx.x / 32; y < 32; y += kThreads / 32) {
    if (kByHead) {
      if (row + x < length && head + y < heads) *in_heads(x, y) = tile[x][y];
    } else {
      if (row + y < length && head + x < heads) *in_sums(y, x) = tile[y][x];
    }
  }
}

template <bool kByHead>
void turn_sums(const RowSet& rows, const Tensor& sums, float* by_head) {
  launch(turn_sums_kernel<kByHead>,
         {.blocks = divide_up(rows.longest, 32),
          .blocks_y = rows.sequences,
          .blocks_z = divide_up(sums.cols, 32),
          .threads = kThreads},
         rows.longest, sums.cols, static_cast<float*>(sums.data), sums.stride, by_head);
}

}  // namespace

int64_t places_of_offsets(int64_t batch) { return round_up(batch + 1, 64); }

void place_sequences(const RowSet& rows, int64_t batch, const SequencePlaces& places) {
  launch(place_sequences_kernel, {.blocks = divide_up(batch + 1, kThreads), .threads = kThreads}, rows, batch,
         places_of_offsets(batch), places);
}

void clear_spare_rows(const RowSet& rows, const Tensor& t) {
  // At most a sixteenth of the rows (infer/forward/batch_buffer.cpp).
  const int64_t eights = std::max<int64_t>(1, t.rows / 16 * (t.cols / 8));
  launch(clear_spare_rows_kernel, {.blocks = std::min<int64_t>(1024, divide_up(eights, kThreads)), .threads = kThreads},
         rows, t);
}

void sums_by_head(const RowSet& rows, const Tensor& log_sum_exp, float* by_head) {
  turn_sums<true>(rows, log_sum_exp, by_head);
}

void sums_by_row(const RowSet& rows, const float* by_head, const Tensor& log_sum_exp) {
  turn_sums<false>(rows, log_sum_exp, const_cast<float*>(by_head));
}

}  // namespace brisk::cuda
