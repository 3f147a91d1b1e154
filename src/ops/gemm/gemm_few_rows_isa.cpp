#include "ops/cpu/simd.h"
#include "ops/gemm/gemm_few_rows.h"

namespace brisk::BRISK_ISA {

namespace {

#if defined(BRISK_ISA_avx2)
constexpr int kWeights = 2;  // rows of the weight at a time: 2 x 4 sums and the factors fill the 16 registers
#else
constexpr int kWeights = 4;
#endif
constexpr int kMostRows = 4;  // rows of A at a time

template <bool kRounds, typename T>
inline Vec factor(const T* p, int64_t lanes) {
  const Vec x = load(p, lanes);
  if constexpr (kRounds && sizeof(T) == 4) {
    bf16_t bits[kLanes];
    store(bits, x);
    return load(bits);
  }
  return x;
}

template <int kRows, bool kRounds, typename A, typename B>
void multiply_block(int64_t k, const A* a, int64_t a_stride, const B* b, int64_t b_stride, float* out) {
  Vec sum[kRows][kWeights];
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int w = 0; w < kWeights; ++w) sum[r][w] = zero();
  }
  const auto step = [&](int64_t p, int64_t lanes) BRISK_INLINE {
    Vec weight[kWeights];
#pragma GCC unroll 4
    for (int w = 0; w < kWeights; ++w) weight[w] = factor<kRounds>(b + w * b_stride + p, lanes);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      const Vec x = factor<kRounds>(a + r * a_stride + p, lanes);
#pragma GCC unroll 4
      for (int w = 0; w < kWeights; ++w) sum[r][w] = fma(x, weight[w], sum[r][w]);
    }
  };
  for_columns(k, step);
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int w = 0; w < kWeights; ++w) out[r * kFewRowsCols + w] = reduce_add(sum[r][w]);
  }
}

template <int kRows, bool kRounds, typename A, typename B>
void multiply_columns(int64_t k, const A* a, int64_t a_stride, const B* b, int64_t b_stride, int64_t count,
                      float* out) {
  int64_t col = 0;
  for (; col + kWeights <= count; col += kWeights) {
    multiply_block<kRows, kRounds>(k, a, a_stride, b + col * b_stride, b_stride, out + col);
  }
  for (; col < count; ++col) {  // the same row of the weight kWeights times
    float same[kRows * kFewRowsCols];
    multiply_block<kRows, kRounds>(k, a, a_stride, b + col * b_stride, int64_t{0}, same);
    for (int r = 0; r < kRows; ++r) out[r * kFewRowsCols + col] = same[r * kFewRowsCols];
  }
}

template <bool kRounds, typename A, typename B>
void multiply_rows(int64_t m, int64_t k, const A* a, int64_t a_stride, const B* b, int64_t b_stride, int64_t count,
                   float* out) {
  for (; m >= kMostRows; m -= kMostRows, a += kMostRows * a_stride, out += kMostRows * kFewRowsCols) {
    multiply_columns<kMostRows, kRounds>(k, a, a_stride, b, b_stride, count, out);
  }
  if (m == 3) multiply_columns<3, kRounds>(k, a, a_stride, b, b_stride, count, out);
  if (m == 2) multiply_columns<2, kRounds>(k, a, a_stride, b, b_stride, count, out);
  if (m == 1) multiply_columns<1, kRounds>(k, a, a_stride, b, b_stride, count, out);
}

}  // namespace

void multiply_few_rows(int64_t m, int64_t k, const GemmOperand& a, const GemmOperand& b, Arithmetic arithmetic,
                       int64_t first, int64_t count, float* out) {
  with_element(a.type, [&](auto of_a) {
    with_element(b.type, [&](auto of_b) {
      const auto* left = static_cast<const decltype(of_a)*>(a.data);
      const auto* right = static_cast<const decltype(of_b)*>(b.data) + first * b.stride;
      if (arithmetic == Arithmetic::bf16) {
        multiply_rows<true>(m, k, left, a.stride, right, b.stride, count, out);
      } else {
        multiply_rows<false>(m, k, left, a.stride, right, b.stride, count, out);
      }
    });
  });
}

}  // namespace brisk::BRISK_ISA
