#include "ops/gemm/gemm_epilogue_simd.h"
#include "ops/linear/linear_kernels.h"

namespace brisk::BRISK_ISA {

void linear_gradient_rows(const LinearBackward& op, int64_t begin, int64_t end, float* column_sums) {
  const int64_t width = op.dy.cols;
  const bool drops = op.dropout.active();
  const IntVec threshold = int_set1(drops ? op.dropout.threshold() : 0);
  const Vec scale = set1(drops ? op.dropout.scale() : 1.0f);
  with_activation(op.activation, [&]<Activation kKind>() {
    for (int64_t row = begin; row < end; ++row) {
      const uint32_t key = drops ? op.dropout.row_key(op.rows, row) : 0;
      for_columns(width, [&](int64_t c, int64_t lanes) BRISK_INLINE {
        Vec du = load_at(op.dy, row * op.dy.stride + c, lanes);
        if (drops) du = drop(du, key, c, threshold, scale);
        if constexpr (kKind != Activation::none) {
          du *= activate_slope<kKind>(load_at(op.before, row * op.before.stride + c, lanes));
        }
        store_at(op.scratch, row * op.scratch.stride + c, du, lanes);
        if (column_sums != nullptr) store(column_sums + c, load(column_sums + c, lanes) + du, lanes);
      });
    }
  });
}

void linear_column_sums(const Tensor& x, int64_t begin, int64_t end, float* column_sums) {
  with_element(x.type, [&](auto of_x) {
    const auto* data = x.as<decltype(of_x)>();
    for (int64_t row = begin; row < end;
         row += 4) {  // four rows at a time: the sums are read and written a quarter as often
      const int64_t rows = std::min<int64_t>(4, end - row);
      for_columns(x.cols, [&](int64_t c, int64_t lanes) BRISK_INLINE {
        Vec sum = load(column_sums + c, lanes);
        for (int64_t r = 0; r < rows; ++r) sum += load(data + (row + r) * x.stride + c, lanes);
        store(column_sums + c, sum, lanes);
      });
    }
  });
}

}  // namespace brisk::BRISK_ISA
