#include "ops/cpu/simd.h"
#include "ops/softmax/softmax_kernels.h"

namespace brisk::BRISK_ISA {

namespace {

// Powers of a row that is no wider wait for their sum in the first cache; those of a wider one are computed twice.
constexpr int64_t kMostPowers = 2048;

}  // namespace

void softmax_forward_rows(const SoftmaxForward& op, int64_t begin, int64_t end) {
  const int64_t width = op.x.cols / op.groups;
  with_element(op.x.type, [&](auto of_x) {
    with_element(op.y.type, [&](auto of_y) {
      for (int64_t at = begin * op.groups; at < end * op.groups; ++at) {
        const int64_t row = at / op.groups, first = at % op.groups * width;
        const auto* x = op.x.as<decltype(of_x)>() + row * op.x.stride + first;
        auto* y = op.y.as<decltype(of_y)>() + row * op.y.stride + first;
        Vec largest = set1(-__builtin_inff());
        for_columns(width, [&](int64_t c, int64_t lanes) BRISK_INLINE {
          largest = max(largest, first_lanes(load(x + c, lanes), lanes, largest));
        });
        const float most = reduce_max(largest);
        float powers[kMostPowers];
        const bool fits = width <= kMostPowers;
        Vec sum = zero();
        for_columns(width, [&](int64_t c, int64_t lanes) BRISK_INLINE {
          const Vec power = first_lanes(exp(load(x + c, lanes) - set1(most)), lanes);
          if (fits) store(powers + c, power, lanes);
          sum = sum + power;
        });
        const float total = reduce_add(sum);
        const Vec factor = set1(1.0f / total), shift = set1(most + __builtin_logf(total));
        if (op.logarithm) {
          for_columns(width,
                      [&](int64_t c, int64_t lanes) BRISK_INLINE { store(y + c, load(x + c, lanes) - shift, lanes); });
        } else if (fits) {
          for_columns(width, [&](int64_t c, int64_t lanes)
                                 BRISK_INLINE { store(y + c, load(powers + c, lanes) * factor, lanes); });
        } else {
          for_columns(width, [&](int64_t c, int64_t lanes)
                                 BRISK_INLINE { store(y + c, exp(load(x + c, lanes) - set1(most)) * factor, lanes); });
        }
      }
    });
  });
}

void softmax_backward_rows(const SoftmaxBackward& op, int64_t begin, int64_t end) {
  const int64_t width = op.y.cols / op.groups;
  const bool adds = op.dx_adds;
  with_element(op.y.type, [&](auto of_y) {
    with_element(op.dy.type, [&](auto of_dy) {
      with_element(op.dx.type, [&](auto of_dx) {
        for (int64_t at = begin * op.groups; at < end * op.groups; ++at) {
          const int64_t row = at / op.groups, first = at % op.groups * width;
          const auto* y = op.y.as<decltype(of_y)>() + row * op.y.stride + first;
          const auto* dy = op.dy.as<decltype(of_dy)>() + row * op.dy.stride + first;
          auto* dx = op.dx.as<decltype(of_dx)>() + row * op.dx.stride + first;
          const auto put = [&](int64_t c, int64_t lanes, Vec value)
                               BRISK_INLINE { store(dx + c, adds ? load(dx + c, lanes) + value : value, lanes); };
          Vec sum = zero();
          if (op.logarithm) {
            for_columns(width, [&](int64_t c, int64_t lanes) BRISK_INLINE { sum = sum + load(dy + c, lanes); });
            const Vec total = set1(reduce_add(sum));
            for_columns(width, [&](int64_t c, int64_t lanes) BRISK_INLINE {
              put(c, lanes, load(dy + c, lanes) - exp(load(y + c, lanes)) * total);
            });
          } else {
            for_columns(width, [&](int64_t c, int64_t lanes)
                                   BRISK_INLINE { sum = fma(load(dy + c, lanes), load(y + c, lanes), sum); });
            const Vec total = set1(reduce_add(sum));
            for_columns(width, [&](int64_t c, int64_t lanes)
                                   BRISK_INLINE { put(c, lanes, load(y + c, lanes) * (load(dy + c, lanes) - total)); });
          }
        }
      });
    });
  });
}

}  // namespace brisk::BRISK_ISA
