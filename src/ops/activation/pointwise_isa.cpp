#include "ops/activation/pointwise_kernels.h"
#include "ops/gemm/gemm_activation_simd.h"

namespace brisk::BRISK_ISA {

void pointwise_forward_rows(const PointwiseForward& op, int64_t begin, int64_t end) {
  const Vec factor = set1(op.factor);
  with_activation(op.activation, [&]<Activation kKind>() {
    with_element(op.x.type, [&](auto of_x) {
      with_element(op.y.type, [&](auto of_y) {
        for (int64_t row = begin; row < end; ++row) {
          const auto* x = op.x.as<decltype(of_x)>() + row * op.x.stride;
          auto* y = op.y.as<decltype(of_y)>() + row * op.y.stride;
          for_columns(op.y.cols, [&](int64_t c, int64_t lanes) BRISK_INLINE {
            store(y + c, factor * activate<kKind>(load(x + c, lanes)), lanes);
          });
        }
      });
    });
  });
}

void pointwise_backward_rows(const PointwiseBackward& op, int64_t begin, int64_t end) {
  const Vec factor = set1(op.factor);
  with_activation(op.activation, [&]<Activation kKind>() {
    with_element(op.x.type, [&](auto of_x) {
      with_element(op.dy.type, [&](auto of_dy) {
        with_element(op.dx.type, [&](auto of_dx) {
          for (int64_t row = begin; row < end; ++row) {
            const auto* dy = op.dy.as<decltype(of_dy)>() + row * op.dy.stride;
            auto* dx = op.dx.as<decltype(of_dx)>() + row * op.dx.stride;
            if constexpr (kKind == Activation::none) {
              for_columns(op.dy.cols, [&](int64_t c, int64_t lanes)
                                          BRISK_INLINE { store(dx + c, factor * load(dy + c, lanes), lanes); });
            } else {
              const auto* x = op.x.as<decltype(of_x)>() + row * op.x.stride;
              for_columns(op.dy.cols, [&](int64_t c, int64_t lanes) BRISK_INLINE {
                store(dx + c, factor * load(dy + c, lanes) * activate_slope<kKind>(load(x + c, lanes)), lanes);
              });
            }
          }
        });
      });
    });
  });
}

}  // namespace brisk::BRISK_ISA
