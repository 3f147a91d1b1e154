// Backward goes over the rows of dx: each knows the first row of y that picked it and how many did, so dx is written
// once and nothing races. Rows picked more than once look for the others in y's order.
#include <climits>

#include "base/rounding.h"
#include "ops/cuda/cuda_elements.cuh"
#include "ops/cuda/cuda_launch.cuh"
#include "ops/rows/pick_rows.h"

namespace brisk::cuda {

namespace {

constexpr int kThreads = 256;

template <typename T, int kCount>
__global__ void pick_rows_forward_kernel(PickRowsForward op) {
  const int64_t per_row = op.y.cols / kCount, at = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (at >= op.y.rows * per_row) return;
  const int64_t row = at / per_row, column = at % per_row * kCount;
  store(static_cast<T*>(op.y.data) + row * op.y.stride + column,
        load<kCount>(static_cast<const T*>(op.x.data) + op.source[row] * op.x.stride + column));
}

// Of a row of dx.
struct Picks {
  int32_t first;  // the first row of y that picked it
  int32_t count;
};

__global__ void clear_picks_kernel(Picks* picks, int64_t rows) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (row < rows) picks[row] = {INT_MAX, 0};
}

__global__ void find_picks_kernel(const int32_t* source, int64_t picked, Picks* picks) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (row >= picked) return;
  atomicMin(&picks[source[row]].first, static_cast<int32_t>(row));
  atomicAdd(&picks[source[row]].count, 1);
}

template <typename Dy, typename Dx, int kCount>
__global__ void pick_rows_backward_kernel(PickRowsBackward op, const Picks* picks) {
  const int64_t per_row = op.dx.cols / kCount, at = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (at >= op.dx.rows * per_row) return;
  const int64_t row = at / per_row, column = at % per_row * kCount;
  const Picks pick = picks[row];
  if (pick.count == 0 && op.dx_adds) return;
  Dx* dx = static_cast<Dx*>(op.dx.data) + row * op.dx.stride + column;
  Floats<kCount> sum = {};
  if (op.dx_adds) sum = load<kCount>(dx);
  int found = 0;
  for (int64_t r = pick.first; found < pick.count; ++r) {
    if (op.source[r] != row) continue;
    ++found;
    const Floats<kCount> dy = load<kCount>(static_cast<const Dy*>(op.dy.data) + r * op.dy.stride + column);
    for (int i = 0; i < kCount; ++i) sum.v[i] += dy.v[i];
  }
  store(dx, sum);
}

}  // namespace

void pick_rows_forward(const PickRowsForward& op) {
  expect(op.x.type == op.y.type && op.x.cols == op.y.cols, "rows are picked as they are");
  const bool eights = in_eights(op.x) && in_eights(op.y);
  const Launch shape{.blocks = divide_up(op.y.rows * op.y.cols / (eights ? 8 : 1), kThreads), .threads = kThreads};
  with_any_type(op.x.type, [&](auto type) {
    if (eights) {
      launch(pick_rows_forward_kernel<decltype(type), 8>, shape, op);
    } else {
      launch(pick_rows_forward_kernel<decltype(type), 1>, shape, op);
    }
  });
}

void pick_rows_backward(const PickRowsBackward& op) {
  if (op.dx.rows == 0) return;
  auto* picks = static_cast<Picks*>(workspace(op.dx.rows * static_cast<int64_t>(sizeof(Picks))));
  launch(clear_picks_kernel, {.blocks = divide_up(op.dx.rows, kThreads), .threads = kThreads}, picks, op.dx.rows);
  launch(find_picks_kernel, {.blocks = divide_up(op.dy.rows, kThreads), .threads = kThreads}, op.source, op.dy.rows,
         picks);
  const bool eights = in_eights(op.dx) && in_eights(op.dy);
  const Launch shape{.blocks = divide_up(op.dx.rows * op.dx.cols / (eights ? 8 : 1), kThreads), .threads = kThreads};
  const auto run = [&](auto y, auto x) {
    using Dy = decltype(y);
    using Dx = decltype(x);
    if (eights) {
      launch(pick_rows_backward_kernel<Dy, Dx, 8>, shape, op, picks);
    } else {
      launch(pick_rows_backward_kernel<Dy, Dx, 1>, shape, op, picks);
    }
  };
  if (op.dy.type == DType::f16 && op.dx.type == DType::f16) return run(f16_t{}, f16_t{});
  with_type(op.dy.type, [&](auto y) { with_type(op.dx.type, [&](auto x) { run(y, x); }); });
}

}  // namespace brisk::cuda
