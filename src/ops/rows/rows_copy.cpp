#include "ops/rows/rows_copy.h"

#include <cstring>

#include "base/runtime.h"
#include "ops/element.h"
#include "ops/elementwise/elementwise.h"

namespace brisk::cpu {

namespace {

void copy_row(const Tensor& from, int64_t from_row, const Tensor& to, int64_t to_row) {
  if (from.type == to.type) {
    const int64_t size = size_of(from.type);
    std::memcpy(static_cast<char*>(to.data) + to_row * to.stride * size,
                static_cast<const char*>(from.data) + from_row * from.stride * size,
                static_cast<size_t>(from.cols * size));
    return;
  }
  for (int64_t col = 0; col < from.cols; ++col) set_element(to, to_row, col, element(from, from_row, col));
}

}  // namespace

void copy_rows(const Tensor& from, const Tensor& to, bool adds) {
  const Combine op{.b = from, .y = to, .y_adds = adds};
  const bool has_f16 = from.type == DType::f16 || to.type == DType::f16;  // a GPU's, here in tests alone
  if (adds || from.type != to.type) return has_f16 ? ref::combine(op) : combine(op);
  thread_pool().for_range(from.rows, 16, [&](int64_t begin, int64_t end, int) {
    for (int64_t row = begin; row < end; ++row) copy_row(from, row, to, row);
  });
}

void clear_rows(const Tensor& rows) {
  const int64_t size = size_of(rows.type);
  thread_pool().for_range(rows.rows, 16, [&](int64_t begin, int64_t end, int) {
    for (int64_t row = begin; row < end; ++row) {
      std::memset(rows.as<char>() + row * rows.stride * size, 0, static_cast<size_t>(rows.cols * size));
    }
  });
}

void append_to_cache(const Tensor& from, const RowSet& rows, const int32_t* begin, const Tensor& cache) {
  for (int64_t s = 0; s < rows.sequences; ++s) {
    for (int64_t row = rows.starts[s]; row < rows.starts[s + 1]; ++row) {
      copy_row(from, row, cache, begin[s] + rows.position[row]);
    }
  }
}

void move_rows(const Tensor& rows, const RowMove* moves, int64_t count, int64_t /*longest*/) {
  const int64_t size = size_of(rows.type), bytes = rows.cols * size;
  const auto at = [&](int64_t row) { return rows.as<char>() + row * rows.stride * size; };
  for (int64_t m = 0; m < count; ++m) {
    const RowMove& move = moves[m];
    if (rows.stride == rows.cols) {
      std::memcpy(at(move.to), at(move.from), static_cast<size_t>(move.count * bytes));
      continue;
    }
    for (int64_t row = 0; row < move.count; ++row) {
      std::memcpy(at(move.to + row), at(move.from + row), static_cast<size_t>(bytes));
    }
  }
}

void gather_last_rows(const Tensor& from, const RowSet& rows, const Tensor& to) {
  for (int64_t s = 0; s < rows.sequences; ++s) copy_row(from, rows.starts[s + 1] - 1, to, s);
}

}  // namespace brisk::cpu
