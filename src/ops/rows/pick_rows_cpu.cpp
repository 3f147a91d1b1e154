#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/runtime.h"
#include "ops/rows/pick_rows_kernels.h"

namespace brisk::cpu {

namespace {

// Below this many bytes a second thread costs more than it saves (a hand-over takes some microseconds).
constexpr int64_t kBytesPerThread = 64 << 10;

int64_t grain(int64_t row_bytes) { return std::max<int64_t>(1, kBytesPerThread / std::max<int64_t>(1, row_bytes)); }

}  // namespace

void pick_rows_forward(const PickRowsForward& op) {
  BRISK_CHECK(op.x.type == op.y.type && op.x.cols == op.y.cols, "{} columns from {}", op.y.cols, op.x.cols);
  const int64_t size = size_of(op.x.type), bytes = op.y.cols * size;
  thread_pool().for_range(op.y.rows, grain(bytes), [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) {
      std::memcpy(op.y.as<char>() + r * op.y.stride * size, op.x.as<char>() + op.source[r] * op.x.stride * size,
                  static_cast<size_t>(bytes));
    }
  });
}

void pick_rows_backward(const PickRowsBackward& op) {
  if (!has_vector_kernels()) return ref::pick_rows_backward(op);
  const auto rows = BRISK_ACTIVE_ISA(pick_rows_backward_rows);
  // With nothing to clear, as many rows are touched as were picked.
  const int64_t touched = op.dx_adds ? std::min(op.dy.rows, op.dx.rows) : op.dx.rows;
  const int64_t spread = touched > 0 ? op.dx.rows / touched : 1;
  thread_pool().for_range(op.dx.rows, grain(op.dx.cols * size_of(op.dx.type)) * spread,
                          [&](int64_t begin, int64_t end, int) { rows(op, begin, end); });
}

}  // namespace brisk::cpu
