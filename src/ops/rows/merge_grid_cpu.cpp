#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/runtime.h"
#include "ops/rows/merge_grid.h"
#include "ops/rows/rows_copy.h"

namespace brisk::cpu {

namespace {

// Below this many bytes a second thread costs more than it saves (a hand-over takes some microseconds).
constexpr int64_t kMergedBytesOfAThread = 64 << 10;

}  // namespace

void merge_grid_forward(const MergeGridForward& op) {
  BRISK_CHECK(op.x.type == op.y.type && op.y.cols == 4 * op.x.cols, "{} columns from {}", op.y.cols, op.x.cols);
  const int64_t real = op.rows.starts[op.rows.sequences], size = size_of(op.x.type), bytes = op.x.cols * size;
  const int64_t grain = std::max<int64_t>(1, kMergedBytesOfAThread / (4 * bytes));
  thread_pool().for_range(op.y.rows, grain, [&](int64_t begin, int64_t end, int) {
    for (int64_t row = begin; row < end; ++row) {
      char* to = op.y.as<char>() + row * op.y.stride * size;
      for (int32_t part = 0; part < 4; ++part, to += bytes) {
        if (row < real) {
          std::memcpy(to, op.x.as<char>() + op.grid.source(row, part) * op.x.stride * size, static_cast<size_t>(bytes));
        } else {
          std::memset(to, 0, static_cast<size_t>(bytes));
        }
      }
    }
  });
}

void merge_grid_backward(const MergeGridBackward& op) {
  const int64_t real = std::min<int64_t>(op.dx.rows, op.rows.starts[op.rows.sequences]), width = op.dx.cols;
  const int64_t grain = std::max<int64_t>(1, kMergedBytesOfAThread / (width * size_of(op.dx.type)));
  if (op.dx.type == op.dy.type && !op.dx_adds) {
    const int64_t size = size_of(op.dx.type), bytes = width * size;
    thread_pool().for_range(op.dx.rows, grain, [&](int64_t begin, int64_t end, int) {
      for (int64_t row = begin; row < end; ++row) {
        char* to = op.dx.as<char>() + row * op.dx.stride * size;
        if (row >= real) {
          std::memset(to, 0, static_cast<size_t>(bytes));
          continue;
        }
        int32_t part = 0;
        const int64_t from = op.grid.target(row, part);
        std::memcpy(to, op.dy.as<char>() + (from * op.dy.stride + part * width) * size, static_cast<size_t>(bytes));
      }
    });
    return;
  }
  ref::merge_grid_backward(op);
}

}  // namespace brisk::cpu
