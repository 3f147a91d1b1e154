// Groups of four inputs and four outputs: a group is a quarter of a 128-bit lane's row, so that its inputs reach its outputs
// by permutations within those lanes.
#include "ops/cpu/simd.h"
#include "ops/grouped_linear/grouped_linear_kernels.h"

namespace brisk::BRISK_ISA {

namespace {

// Each of four neighbouring lanes gets the number of lane kLane of them.
template <int kLane>
Vec spread(Vec x) {
  constexpr int kControl = kLane * 0x55;
#if defined(BRISK_ISA_avx2)
  return _mm256_permute_ps(x, kControl);
#else
  return _mm512_permute_ps(x, kControl);
#endif
}

// Lane i of each four: the sum of those four lanes of sums[i].
Vec sums_of_fours(Vec a, Vec b, Vec c, Vec d) {
#if defined(BRISK_ISA_avx2)
  const Vec ab = _mm256_unpacklo_ps(a, b) + _mm256_unpackhi_ps(a, b);
  const Vec cd = _mm256_unpacklo_ps(c, d) + _mm256_unpackhi_ps(c, d);
  return _mm256_shuffle_ps(ab, cd, 0x44) + _mm256_shuffle_ps(ab, cd, 0xEE);
#else
  const Vec ab = _mm512_unpacklo_ps(a, b) + _mm512_unpackhi_ps(a, b);
  const Vec cd = _mm512_unpacklo_ps(c, d) + _mm512_unpackhi_ps(c, d);
  return _mm512_shuffle_ps(ab, cd, 0x44) + _mm512_shuffle_ps(ab, cd, 0xEE);
#endif
}

// A row of x with a group's inputs side by side, as f32.
template <typename T>
const float* grouped_row(const GroupedLinearShape& shape, const T* x, float* row) {
  const int64_t cols = shape.groups * kGroupOfFour;
  if (shape.inputs.matrix_cols == 0) {
    for_columns(cols, [&](int64_t c, int64_t lanes) BRISK_INLINE { store(row + c, load(x + c, lanes), lanes); });
    return row;
  }
  float plain[kMostGroupedColumns];
  for_columns(cols, [&](int64_t c, int64_t lanes) BRISK_INLINE { store(plain + c, load(x + c, lanes), lanes); });
  for (int64_t g = 0; g < shape.groups; ++g) {
    for (int64_t i = 0; i < kGroupOfFour; ++i) row[g * kGroupOfFour + i] = plain[shape.inputs.column(g, i)];
  }
  return row;
}

}  // namespace

void grouped_linear_forward_rows(const GroupedLinearForward& op, const float* weight, int64_t begin, int64_t end) {
  const int64_t cols = op.shape.groups * kGroupOfFour, outputs = op.weight.rows;
  with_element(op.x.type, [&](auto of_x) {
    with_element(op.y.type, [&](auto of_y) {
      for (int64_t n = begin; n < end; ++n) {
        float row[kMostGroupedColumns];
        grouped_row(op.shape, op.x.as<decltype(of_x)>() + n * op.x.stride, row);
        auto* y = op.y.as<decltype(of_y)>() + n * op.y.stride;
        for (int64_t c = 0; c < cols; c += kLanes) {
          const Vec x = load(row + c);
          const Vec x0 = spread<0>(x), x1 = spread<1>(x), x2 = spread<2>(x), x3 = spread<3>(x);
          for (int64_t r = c; r < outputs; r += cols) {
            Vec sum = op.bias ? load(op.bias.f32() + r) : zero();
            sum = fma(x0, load(weight + r), sum);
            sum = fma(x1, load(weight + outputs + r), sum);
            sum = fma(x2, load(weight + 2 * outputs + r), sum);
            sum = fma(x3, load(weight + 3 * outputs + r), sum);
            store(y + r, sum);
          }
        }
      }
    });
  });
}

void grouped_linear_dx_rows(const GroupedLinearBackward& op, const float* weight, int64_t begin, int64_t end) {
  const int64_t cols = op.shape.groups * kGroupOfFour, outputs = op.weight.rows;
  with_element(op.dy.type, [&](auto of_dy) {
    with_element(op.dx.type, [&](auto of_dx) {
      for (int64_t n = begin; n < end; ++n) {
        float row[kMostGroupedColumns];
        const auto* dy = op.dy.as<decltype(of_dy)>() + n * op.dy.stride;
        auto* dx = op.dx.as<decltype(of_dx)>() + n * op.dx.stride;
        for (int64_t c = 0; c < cols; c += kLanes) {
          Vec sum0 = zero(), sum1 = zero(), sum2 = zero(), sum3 = zero();
          for (int64_t r = c; r < outputs; r += cols) {
            const Vec slope = load(dy + r);
            sum0 = fma(slope, load(weight + r), sum0);
            sum1 = fma(slope, load(weight + outputs + r), sum1);
            sum2 = fma(slope, load(weight + 2 * outputs + r), sum2);
            sum3 = fma(slope, load(weight + 3 * outputs + r), sum3);
          }
          store(row + c, sums_of_fours(sum0, sum1, sum2, sum3));
        }
        if (op.shape.inputs.matrix_cols != 0) {
          float plain[kMostGroupedColumns];
          for (int64_t g = 0; g < op.shape.groups; ++g) {
            for (int64_t i = 0; i < kGroupOfFour; ++i) {
              plain[op.shape.inputs.column(g, i)] = row[g * kGroupOfFour + i];
            }
          }
          for (int64_t c = 0; c < cols; c += kLanes) store(row + c, load(plain + c));
        }
        for (int64_t c = 0; c < cols; c += kLanes) {
          store(dx + c, op.dx_adds ? load(dx + c) + load(row + c) : load(row + c));
        }
      }
    });
  });
}

void grouped_linear_dweight_rows(const GroupedLinearBackward& op, float* sums, int64_t begin, int64_t end) {
  const int64_t cols = op.shape.groups * kGroupOfFour, outputs = op.weight.rows;
  for (int64_t c = 0; c < outputs * (kGroupOfFour + 1); c += kLanes) store(sums + c, zero());
  with_element(op.x.type, [&](auto of_x) {
    with_element(op.dy.type, [&](auto of_dy) {
      for (int64_t n = begin; n < end; ++n) {
        float row[kMostGroupedColumns];
        grouped_row(op.shape, op.x.as<decltype(of_x)>() + n * op.x.stride, row);
        const auto* dy = op.dy.as<decltype(of_dy)>() + n * op.dy.stride;
        for (int64_t c = 0; c < cols; c += kLanes) {
          const Vec x = load(row + c);
          const Vec x0 = spread<0>(x), x1 = spread<1>(x), x2 = spread<2>(x), x3 = spread<3>(x);
          for (int64_t r = c; r < outputs; r += cols) {
            const Vec slope = load(dy + r);
            const auto add = [&](int64_t i, Vec input) BRISK_INLINE {
              float* sum = sums + i * outputs + r;
              store(sum, fma(slope, input, load(sum)));
            };
            add(0, x0);
            add(1, x1);
            add(2, x2);
            add(3, x3);
            float* bias = sums + kGroupOfFour * outputs + r;
            store(bias, load(bias) + slope);
          }
        }
      }
    });
  });
}

}  // namespace brisk::BRISK_ISA
