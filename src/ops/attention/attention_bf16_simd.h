// The products inside attention in bf16 with fp32 sums, and the layouts they read. Included by attention's *_isa.cpp
// files alone, where the instruction set multiplies bf16.
//
// C[m][n] = sum over d of A[m][d] B[d][n]. A has plain rows. B has "pairs": row d / 2 holds, for each column n, the 32
// bits B[d][n], B[d + 1][n]. AMX and vdpbf16ps read these alike. Rows, columns and depth are multiples of kBlock32.
#pragma once

#include "ops/attention/attention_product_simd.h"

#if defined(__AVX512BF16__)

namespace brisk::BRISK_ISA {

constexpr int64_t kBlock32 = 32;

struct Bf16A {
  const bf16_t* data;
  int64_t stride;  // in elements
};
struct Pairs {
  const float* data;  // 32 bits each: two bf16, never read as a float
  int64_t stride;     // in pairs
};

#if defined(BRISK_ISA_amx)

// Eight tiles of 16 rows of 64 bytes. In memory of its own: the compiler does not know how much of it the instruction
// reads.
struct TileConfig {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
alignas(64) constexpr TileConfig kTileConfig;

// The tiles are set up for the scope's lifetime.
struct TilesInUse {
  TilesInUse() { _tile_loadconfig(&kTileConfig); }
  ~TilesInUse() { _tile_release(); }
};

inline void product32(int64_t rows, int64_t cols, int64_t depth, const Bf16A& a, const Pairs& b, float* c,
                      int64_t c_stride, bool adds) {
  asm volatile("" ::: "memory");  // tile loads do not tell the compiler what they read
  const int64_t a_bytes = a.stride * 2, b_bytes = b.stride * 4, c_bytes = c_stride * 4;
  for (int64_t m = 0; m < rows; m += kBlock32) {
    for (int64_t n = 0; n < cols; n += kBlock32) {
      float* c0 = c + m * c_stride + n;
      float* c1 = c0 + 16 * c_stride;
      if (adds) {
        _tile_loadd(0, c0, c_bytes);
        _tile_loadd(1, c0 + 16, c_bytes);
        _tile_loadd(2, c1, c_bytes);
        _tile_loadd(3, c1 + 16, c_bytes);
      } else {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
      }
      const bf16_t* a0 = a.data + m * a.stride;
      const float* b0 = b.data + n;
      for (int64_t d = 0; d < depth; d += kBlock32) {
        _tile_loadd(4, a0 + d, a_bytes);
        _tile_loadd(6, b0, b_bytes);
        _tile_loadd(7, b0 + 16, b_bytes);
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
        _tile_loadd(5, a0 + 16 * a.stride + d, a_bytes);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
        b0 += 16 * b.stride;
      }
      _tile_stored(0, c0, c_bytes);
      _tile_stored(1, c0 + 16, c_bytes);
      _tile_stored(2, c1, c_bytes);
      _tile_stored(3, c1 + 16, c_bytes);
    }
  }
  asm volatile("" ::: "memory");
}

#else

struct TilesInUse {
  TilesInUse() {}
};

inline void product32(int64_t rows, int64_t cols, int64_t depth, const Bf16A& a, const Pairs& b, float* c,
                      int64_t c_stride, bool adds) {
  constexpr int kRows = 8, kVectors = 2;
  for (int64_t n = 0; n < cols; n += kVectors * kLanes) {
    for (int64_t m = 0; m < rows; m += kRows) {
      float* c0 = c + m * c_stride + n;
      Vec sum[kRows][kVectors];
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) sum[r][v] = adds ? load(c0 + r * c_stride + v * kLanes) : zero();
      }
      const auto* a0 = reinterpret_cast<const float*>(a.data + m * a.stride);
      const float* b0 = b.data + n;
      for (int64_t d = 0; d < depth; d += 2) {
        const __m512bh line[kVectors] = {(__m512bh)load(b0), (__m512bh)load(b0 + kLanes)};
#pragma GCC unroll 8
        for (int r = 0; r < kRows; ++r) {
          const __m512bh x = (__m512bh)set1(a0[r * (a.stride / 2)]);
#pragma GCC unroll 2
          for (int v = 0; v < kVectors; ++v) sum[r][v] = _mm512_dpbf16_ps(sum[r][v], x, line[v]);
        }
        ++a0;
        b0 += b.stride;
      }
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) store(c0 + r * c_stride + v * kLanes, sum[r][v]);
      }
    }
  }
}

#endif

// 32 bf16 of two rows -> their 32 pairs, the first 16 in `low`.
inline void interleave(__m512i first, __m512i second, __m512i& low, __m512i& high) {
  alignas(64) static constexpr uint16_t kLow[32] = {0, 32, 1, 33, 2,  34, 3,  35, 4,  36, 5,  37, 6,  38, 7,  39,
                                                    8, 40, 9, 41, 10, 42, 11, 43, 12, 44, 13, 45, 14, 46, 15, 47};
  const __m512i low_order = _mm512_load_si512(kLow);
  low = _mm512_permutex2var_epi16(first, low_order, second);
  high = _mm512_permutex2var_epi16(first, _mm512_add_epi16(low_order, _mm512_set1_epi16(16)), second);
}

// Two vectors of 16 floats as 32 bf16, one after the other.
inline __m512i join_bf16(Vec first, Vec second) { return (__m512i)_mm512_cvtne2ps_pbh(second, first); }

// 16 pairs (first[i], second[i]).
inline Vec pair_bf16(Vec first, Vec second) {
  alignas(64) static constexpr uint16_t kOrder[32] = {0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
                                                      8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
  return _mm512_castsi512_ps(_mm512_permutexvar_epi16(_mm512_load_si512(kOrder), join_bf16(first, second)));
}

// Rows [row, row + rows) and columns [col, col + width) of a bf16 tensor as contiguous rows of `padded` columns, zero
// to the right and below, up to a multiple of kBlock32 rows.
inline void pack_bf16_rows(const Tensor& t, int64_t row, int64_t rows, int64_t col, int64_t width, bf16_t* out,
                           int64_t padded) {
  const int64_t all_rows = round_up(rows, kBlock32);
  for (int64_t r = 0; r < all_rows; ++r) {
    const bf16_t* in = t.bf16() + (row + r) * t.stride + col;
    for (int64_t c = 0; c < padded; c += 32) {
      const int64_t count = r < rows ? std::clamp<int64_t>(width - c, 0, 32) : 0;
      const __mmask32 mask = count >= 32 ? 0xFFFFFFFFu : _bzhi_u32(0xFFFFFFFFu, static_cast<unsigned>(count));
      _mm512_storeu_si512(out + r * padded + c, _mm512_maskz_loadu_epi16(mask, in + c));
    }
  }
}

// Packed rows [rows, padded] -> pairs along the rows: out[r / 2][c] = rows r, r + 1 of column c.
inline void pair_rows(const bf16_t* in, int64_t rows, int64_t padded, float* out) {
  for (int64_t r = 0; r < rows; r += 2) {
    for (int64_t c = 0; c < padded; c += 32) {
      __m512i low, high;
      interleave(_mm512_loadu_si512(in + r * padded + c), _mm512_loadu_si512(in + (r + 1) * padded + c), low, high);
      _mm512_storeu_si512(out + r / 2 * padded + c, low);
      _mm512_storeu_si512(out + r / 2 * padded + c + 16, high);
    }
  }
}

// 16 rows of `columns` 32-bit elements -> `columns` rows of 16.
inline void turn_16(const float* in, int64_t in_stride, int64_t columns, float* out, int64_t out_stride) {
  for (int64_t c = 0; c < columns; c += 4) turn_fours(in + c, in_stride, out + c * out_stride, out_stride);
}

// 2^t within 4e-6, exact for whole t: what is rounded to bf16 next needs no more.
inline Vec power_of_two(Vec t) {
  const Vec f = _mm512_reduce_ps(t, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);  // t - floor(t)
  Vec p = set1(0.0135553249f);
  p = fma(p, f, set1(0.0520332094f));
  p = fma(p, f, set1(0.241379167f));
  p = fma(p, f, set1(0.693032299f));
  p = fma(p, f, set1(1.0f));
  return _mm512_scalef_ps(p, t);  // times 2^floor(t)
}

// log2(x) of positive x, within 1e-6 of the larger of 1 and the result.
inline Vec log_two(Vec x) {
  Vec exponent = _mm512_getexp_ps(x), m = _mm512_getmant_ps(x, _MM_MANT_NORM_1_2, _MM_MANT_SIGN_src);  // m in [1, 2)
  const __mmask16 upper = _mm512_cmp_ps_mask(m, set1(1.41421356f), _CMP_GT_OQ);
  m = _mm512_mask_mul_ps(m, upper, m, set1(0.5f));
  exponent = _mm512_mask_add_ps(exponent, upper, exponent, set1(1.0f));
  const Vec s = (m - set1(1.0f)) / (m + set1(1.0f)), square = s * s;  // log m = 2 (s + s^3/3 + s^5/5 + ...)
  Vec p = set1(2.88539008f / 9);
  p = fma(p, square, set1(2.88539008f / 7));
  p = fma(p, square, set1(2.88539008f / 5));
  p = fma(p, square, set1(2.88539008f / 3));
  p = fma(p, square, set1(2.88539008f));
  return fma(p, s, exponent);
}

}  // namespace brisk::BRISK_ISA

#endif
