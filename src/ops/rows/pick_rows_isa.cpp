#include "ops/cpu/simd.h"
#include "ops/rows/pick_rows_kernels.h"

namespace brisk::BRISK_ISA {

void pick_rows_backward_rows(const PickRowsBackward& op, int64_t begin, int64_t end) {
  with_element(op.dx.type, [&](auto of_dx) {
    using Dx = decltype(of_dx);
    const auto row_of_dx = [&](int64_t row) { return op.dx.as<Dx>() + row * op.dx.stride; };
    for (int64_t row = begin; row < end && !op.dx_adds; ++row) {
      Dx* dx = row_of_dx(row);
      for_columns(op.dx.cols, [&](int64_t c, int64_t lanes) BRISK_INLINE { store(dx + c, zero(), lanes); });
    }
    with_element(op.dy.type, [&](auto of_dy) {
      // Every thread looks at every number: N of them are nothing compared with the rows.
      for (int64_t r = 0; r < op.dy.rows; ++r) {
        if (op.source[r] < begin || op.source[r] >= end) continue;
        Dx* dx = row_of_dx(op.source[r]);
        const auto* dy = op.dy.as<decltype(of_dy)>() + r * op.dy.stride;
        for_columns(op.dx.cols, [&](int64_t c, int64_t lanes)
                                    BRISK_INLINE { store(dx + c, load(dx + c, lanes) + load(dy + c, lanes), lanes); });
      }
    });
  });
}

}  // namespace brisk::BRISK_ISA
