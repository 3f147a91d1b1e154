// The small products inside attention, in fp32: C = A B or C += A B where C is at most a tile of queries by a block of
// keys, and the packing of a head's columns into contiguous rows and panels. Included by attention's *_isa.cpp files
// alone.
#pragma once

#include "base/rounding.h"
#include "ops/cpu/simd.h"
#include "tensor/tensor.h"

namespace brisk::BRISK_ISA {

// A product of kGroupRows x kPanelVectors vectors stays in registers: 6 x 4 of the 32 of AVX-512, 6 x 2 of the 16 of
// AVX2.
constexpr int64_t kGroupRows = 6;
#if defined(BRISK_ISA_avx2)
constexpr int64_t kPanelVectors = 2;
#else
constexpr int64_t kPanelVectors = 4;
#endif
constexpr int64_t kPanel = kPanelVectors * kLanes;

// A: element (row, depth) is data[row * row_step + depth * depth_step]; either step may be 1.
struct ProductA {
  const float* data;
  int64_t row_step, depth_step;
};

// B: rows of depth, each of whole vectors. Panels of kPanelVectors vectors are panel_step apart: kPanel inside a plain
// matrix, or a panel's whole size where each panel is contiguous.
struct ProductB {
  const float* data;
  int64_t depth_step, panel_step;
};

template <int kRows, int kVectors>
inline void product_in_registers(const float* a, int64_t a_row, int64_t a_depth, const float* b, int64_t b_depth,
                                 float* c, int64_t c_row, int64_t depth, bool adds) {
  Vec sum[kRows][kVectors];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) sum[r][v] = adds ? load(c + r * c_row + v * kLanes) : zero();
  }
  for (int64_t d = 0; d < depth; ++d) {
    Vec line[kVectors];
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) line[v] = load(b + v * kLanes);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const Vec x = set1(a[r * a_row]);
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) sum[r][v] = fma(x, line[v], sum[r][v]);
    }
    a += a_depth;
    b += b_depth;
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) store(c + r * c_row + v * kLanes, sum[r][v]);
  }
}

template <int kVectors>
inline void product_rows(int64_t rows, const float* a, int64_t a_row, int64_t a_depth, const float* b, int64_t b_depth,
                         float* c, int64_t c_row, int64_t depth, bool adds) {
  switch (rows) {
    case 1: return product_in_registers<1, kVectors>(a, a_row, a_depth, b, b_depth, c, c_row, depth, adds);
    case 2: return product_in_registers<2, kVectors>(a, a_row, a_depth, b, b_depth, c, c_row, depth, adds);
    case 3: return product_in_registers<3, kVectors>(a, a_row, a_depth, b, b_depth, c, c_row, depth, adds);
    case 4: return product_in_registers<4, kVectors>(a, a_row, a_depth, b, b_depth, c, c_row, depth, adds);
    case 5: return product_in_registers<5, kVectors>(a, a_row, a_depth, b, b_depth, c, c_row, depth, adds);
    default: return product_in_registers<6, kVectors>(a, a_row, a_depth, b, b_depth, c, c_row, depth, adds);
  }
}

// At most kGroupRows rows by at most kPanelVectors vectors of one panel. The order of each element's sum is that of the
// depth, whatever the number of rows and vectors: where a tile ends changes no bit of the result.
inline void product_of_panel(int64_t rows, int64_t vectors, int64_t depth, const ProductA& a, const float* b,
                             int64_t b_depth, float* c, int64_t c_row, bool adds) {
  switch (vectors) {
    case 1: return product_rows<1>(rows, a.data, a.row_step, a.depth_step, b, b_depth, c, c_row, depth, adds);
#if !defined(BRISK_ISA_avx2)
    case 2: return product_rows<2>(rows, a.data, a.row_step, a.depth_step, b, b_depth, c, c_row, depth, adds);
    case 3: return product_rows<3>(rows, a.data, a.row_step, a.depth_step, b, b_depth, c, c_row, depth, adds);
#endif
    default:
      return product_rows<kPanelVectors>(rows, a.data, a.row_step, a.depth_step, b, b_depth, c, c_row, depth, adds);
  }
}

// One group of rows (at most kGroupRows) by any number of vectors.
inline void product_of_group(int64_t rows, int64_t vectors, int64_t depth, const ProductA& a, const ProductB& b,
                             float* c, int64_t c_row, bool adds) {
  for (int64_t v = 0; v < vectors; v += kPanelVectors) {
    product_of_panel(rows, std::min(kPanelVectors, vectors - v), depth, a, b.data + v / kPanelVectors * b.panel_step,
                     b.depth_step, c + v * kLanes, c_row, adds);
  }
}

// Rows [row, row + rows) and columns [col, col + width) of t, times scale, as contiguous fp32 rows of `padded` columns.
inline void pack_rows(const Tensor& t, int64_t row, int64_t rows, int64_t col, int64_t width, float scale, float* out,
                      int64_t padded) {
  with_element(t.type, [&](auto of_t) {
    for (int64_t r = 0; r < rows; ++r) {
      const auto* in = t.as<decltype(of_t)>() + (row + r) * t.stride + col;
      float* to = out + r * padded;
      for_columns(width,
                  [&](int64_t c, int64_t lanes) BRISK_INLINE { store(to + c, load(in + c, lanes) * set1(scale)); });
      for (int64_t c = round_up(width, kLanes); c < padded; c += kLanes) store(to + c, zero());
    }
  });
}

// The inverse: fp32 rows, each times its scale, into t.
inline void unpack_row(const float* in, float scale, const Tensor& t, int64_t row, int64_t col, int64_t width) {
  with_element(t.type, [&](auto of_t) {
    auto* out = t.as<decltype(of_t)>() + row * t.stride + col;
    for_columns(width,
                [&](int64_t c, int64_t lanes) BRISK_INLINE { store(out + c, load(in + c) * set1(scale), lanes); });
  });
}

#if defined(BRISK_ISA_avx2)
// Four columns of rows t, t + 4 (rows are `stride` apart), in one vector.
inline Vec load_fours(const float* in, int64_t stride) {
  return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(in)), _mm_loadu_ps(in + 4 * stride), 1);
}
inline Vec unpack_low(Vec a, Vec b) { return _mm256_unpacklo_ps(a, b); }
inline Vec unpack_high(Vec a, Vec b) { return _mm256_unpackhi_ps(a, b); }
inline Vec low_halves(Vec a, Vec b) { return _mm256_shuffle_ps(a, b, 0x44); }
inline Vec high_halves(Vec a, Vec b) { return _mm256_shuffle_ps(a, b, 0xEE); }
#else
// Four columns of rows t, t + 4, t + 8, t + 12 (rows are `stride` apart), in one vector.
inline Vec load_fours(const float* in, int64_t stride) {
  Vec x = _mm512_castps128_ps512(_mm_loadu_ps(in));
  x = _mm512_insertf32x4(x, _mm_loadu_ps(in + 4 * stride), 1);
  x = _mm512_insertf32x4(x, _mm_loadu_ps(in + 8 * stride), 2);
  return _mm512_insertf32x4(x, _mm_loadu_ps(in + 12 * stride), 3);
}
inline Vec unpack_low(Vec a, Vec b) { return _mm512_unpacklo_ps(a, b); }
inline Vec unpack_high(Vec a, Vec b) { return _mm512_unpackhi_ps(a, b); }
inline Vec low_halves(Vec a, Vec b) { return _mm512_shuffle_ps(a, b, 0x44); }
inline Vec high_halves(Vec a, Vec b) { return _mm512_shuffle_ps(a, b, 0xEE); }
#endif

// kLanes rows of four columns -> four rows of kLanes. Moves bits only, so 32 bits of any kind will do.
inline void turn_fours(const float* in, int64_t in_stride, float* out, int64_t out_stride) {
  const Vec x0 = load_fours(in, in_stride), x1 = load_fours(in + in_stride, in_stride);
  const Vec x2 = load_fours(in + 2 * in_stride, in_stride), x3 = load_fours(in + 3 * in_stride, in_stride);
  const Vec low01 = unpack_low(x0, x1), high01 = unpack_high(x0, x1);
  const Vec low23 = unpack_low(x2, x3), high23 = unpack_high(x2, x3);
  store(out, low_halves(low01, low23));
  store(out + out_stride, high_halves(low01, low23));
  store(out + 2 * out_stride, low_halves(high01, high23));
  store(out + 3 * out_stride, high_halves(high01, high23));
}

// Packed rows [rows, padded] into panels of kPanel rows: panel p holds, for each of `width` columns (rounded up to 4),
// rows p * kPanel and on. Rows up to the next multiple of kLanes become 0: they end up in columns nobody uses, but with
// what was left there, subnormal numbers among it, products of 8 keys took seven times as long.
inline void pack_panels(float* in, int64_t rows, int64_t padded, int64_t width, float* out) {
  const int64_t depth = round_up(width, 4);
  for (int64_t i = rows * padded; i < round_up(rows, kLanes) * padded; i += kLanes) store(in + i, zero());
  for (int64_t r = 0; r < rows; r += kLanes) {
    float* to = out + r / kPanel * (depth * kPanel) + r % kPanel;
    for (int64_t c = 0; c < depth; c += 4) turn_fours(in + r * padded + c, padded, to + c * kPanel, kPanel);
  }
}

}  // namespace brisk::BRISK_ISA
