#include "ops/activation/gated_kernels.h"
#include "ops/gemm/gemm_activation_simd.h"

namespace brisk::BRISK_ISA {

void gated_forward_rows(const GatedForward& op, int64_t begin, int64_t end) {
  const int64_t width = op.y.cols;
  with_activation(op.activation, [&]<Activation kKind>() {
    with_element(op.x.type, [&](auto of_x) {
      with_element(op.y.type, [&](auto of_y) {
        for (int64_t row = begin; row < end; ++row) {
          const auto* a = op.x.as<decltype(of_x)>() + row * op.x.stride;
          const auto* b = a + width;
          auto* y = op.y.as<decltype(of_y)>() + row * op.y.stride;
          for_columns(width, [&](int64_t c, int64_t lanes) BRISK_INLINE {
            store(y + c, activate<kKind>(load(a + c, lanes)) * load(b + c, lanes), lanes);
          });
        }
      });
    });
  });
}

void gated_backward_rows(const GatedBackward& op, int64_t begin, int64_t end) {
  const int64_t width = op.dy.cols;
  with_activation(op.activation, [&]<Activation kKind>() {
    with_element(op.x.type, [&](auto of_x) {
      with_element(op.dy.type, [&](auto of_dy) {
        with_element(op.dx.type, [&](auto of_dx) {
          for (int64_t row = begin; row < end; ++row) {
            const auto* a = op.x.as<decltype(of_x)>() + row * op.x.stride;
            const auto* b = a + width;
            const auto* dy = op.dy.as<decltype(of_dy)>() + row * op.dy.stride;
            auto* da = op.dx.as<decltype(of_dx)>() + row * op.dx.stride;
            auto* db = da + width;
            for_columns(width, [&](int64_t c, int64_t lanes) BRISK_INLINE {
              const Vec u = load(a + c, lanes), d = load(dy + c, lanes);
              store(da + c, d * load(b + c, lanes) * activate_slope<kKind>(u), lanes);
              store(db + c, d * activate<kKind>(u), lanes);
            });
          }
        });
      });
    });
  });
}

}  // namespace brisk::BRISK_ISA
