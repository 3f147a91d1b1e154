// A thread takes eight columns of a row, or one where rows are no whole eights.
#include "base/rounding.h"
#include "ops/cuda/cuda_elements.cuh"
#include "ops/cuda/cuda_launch.cuh"
#include "ops/rows/rows_copy.h"

namespace brisk::cuda {

namespace {

constexpr int kThreads = 256;

struct SameRow {
  __device__ int64_t from(int64_t row) const { return row; }
  __device__ int64_t to(int64_t row) const { return row; }
};

// Row r of sequence s goes to begin[s] + position; rows of no sequence stay behind.
struct CacheRow {
  RowSet rows;
  const int32_t* begin;
  __device__ int64_t from(int64_t row) const { return row; }
  __device__ int64_t to(int64_t row) const {
    if (row >= rows.starts[rows.sequences]) return -1;
    int64_t low = 0, high = rows.sequences;  // starts[low] <= row < starts[high]
    while (high - low > 1) {
      const int64_t middle = (low + high) / 2;
      (rows.starts[middle] <= row ? low : high) = middle;
    }
    return begin[low] + rows.position[row];
  }
};

struct LastRow {
  const int32_t* starts;
  __device__ int64_t from(int64_t row) const { return starts[row + 1] - 1; }
  __device__ int64_t to(int64_t row) const { return row; }
};

// Row r is row r % longest of move r / longest, if that has so many.
struct MovedRow {
  const RowMove* moves;
  int64_t longest;
  __device__ int64_t from(int64_t row) const { return moves[row / longest].from + row % longest; }
  __device__ int64_t to(int64_t row) const {
    const RowMove& move = moves[row / longest];
    return row % longest < move.count ? move.to + row % longest : -1;
  }
};

template <typename From, typename To, typename Way, int kCount>
__global__ void copy_rows_kernel(Tensor from, Tensor to, int64_t rows, Way way, bool adds) {
  const int64_t per_row = from.cols / kCount, at = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (at >= rows * per_row) return;
  const int64_t row = at / per_row, column = at % per_row * kCount, to_row = way.to(row);
  if (to_row < 0) return;
  To* out = static_cast<To*>(to.data) + to_row * to.stride + column;
  Floats<kCount> values = load<kCount>(static_cast<const From*>(from.data) + way.from(row) * from.stride + column);
  if (adds) {
    const Floats<kCount> before = load<kCount>(out);
    for (int i = 0; i < kCount; ++i) values.v[i] += before.v[i];
  }
  store(out, values);
}

template <typename Way>
void copy_rows_by(const Tensor& from, const Tensor& to, int64_t rows, const Way& way, bool adds) {
  const bool eights = in_eights(from) && in_eights(to);
  const Launch shape{.blocks = divide_up(rows * from.cols / (eights ? 8 : 1), kThreads), .threads = kThreads};
  const auto run = [&](auto f, auto t) {
    using From = decltype(f);
    using To = decltype(t);
    if (eights) {
      launch(copy_rows_kernel<From, To, Way, 8>, shape, from, to, rows, way, adds);
    } else {
      launch(copy_rows_kernel<From, To, Way, 1>, shape, from, to, rows, way, adds);
    }
  };
  if (from.type == DType::f16 && to.type == DType::f16) return run(f16_t{}, f16_t{});
  if (from.type == DType::f16 && to.type == DType::f32) return run(f16_t{}, float{});
  if (from.type == DType::f32 && to.type == DType::f16) return run(float{}, f16_t{});
  with_type(from.type, [&](auto f) { with_type(to.type, [&](auto t) { run(f, t); }); });
}

}  // namespace

void copy_rows(const Tensor& from, const Tensor& to, bool adds) { copy_rows_by(from, to, from.rows, SameRow{}, adds); }

void clear_rows(const Tensor& rows) {
  if (rows.rows == 0 || rows.cols == 0) return;
  const auto size = static_cast<size_t>(size_of(rows.type));
  check(cudaMemset2DAsync(rows.data, static_cast<size_t>(rows.stride) * size, 0, static_cast<size_t>(rows.cols) * size,
                          static_cast<size_t>(rows.rows), stream()),
        "clearing rows");
}

void append_to_cache(const Tensor& from, const RowSet& rows, const int32_t* begin, const Tensor& cache) {
  copy_rows_by(from, cache, rows.rows, CacheRow{rows, begin}, false);
}

void move_rows(const Tensor& rows, const RowMove* moves, int64_t count, int64_t longest) {
  if (count == 0 || longest == 0) return;
  copy_rows_by(rows, rows, count * longest, MovedRow{moves, longest}, false);
}

void gather_last_rows(const Tensor& from, const RowSet& rows, const Tensor& to) {
  copy_rows_by(from, to, rows.sequences, LastRow{rows.starts}, false);
}

}  // namespace brisk::cuda
