#include "ops/cpu/simd.h"
#include "ops/rotary/rotary_kernels.h"

namespace brisk::BRISK_ISA {

void rotary_rows(const Rotary& op, const RotaryTable& table, int64_t begin, int64_t end) {
  const int64_t head_width = op.head_width, cols = op.x.cols;
  const Vec direction = set1(op.inverse ? -1.0f : 1.0f);
  with_element(op.x.type, [&](auto of_x) {
    with_element(op.y.type, [&](auto of_y) {
      for (int64_t row = begin; row < end; ++row) {
        const auto* x = op.x.as<decltype(of_x)>() + row * op.x.stride;
        auto* y = op.y.as<decltype(of_y)>() + row * op.y.stride;
        const float* cosine = table.cosine + op.rows.position[row] * head_width;
        const float* sine = table.sine + op.rows.position[row] * head_width;
        for (int64_t head = 0; head < op.rotated; head += head_width) {
          for_columns(head_width, [&](int64_t c, int64_t lanes) BRISK_INLINE {
            const Vec value = load(x + head + c, lanes);
            const Vec turned = swap_pairs(value) * (load(sine + c, lanes) * direction);
            store(y + head + c, fma(value, load(cosine + c, lanes), turned), lanes);
          });
        }
        if (static_cast<const void*>(x) == static_cast<const void*>(y)) continue;
        for_columns(cols - op.rotated, [&](int64_t c, int64_t lanes) BRISK_INLINE {
          store(y + op.rotated + c, load(x + op.rotated + c, lanes), lanes);
        });
      }
    });
  });
}

}  // namespace brisk::BRISK_ISA
