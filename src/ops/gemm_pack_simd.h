// Packing of an operand into panels of 4-byte units (gemm_kernels.h); included by gemm_isa.cpp alone.
//
// An operand is read in square blocks of kLanes units by kLanes rows (or columns): kLanes vectors in the order of
// memory, transposed in registers where the panel wants the other order.
#pragma once

#include "ops/gemm_kernels.h"
#include "ops/simd.h"

namespace brisk::BRISK_ISA {

#if defined(BRISK_ISA_avx2)

inline void transpose(Vec (&r)[8]) {
  Vec t[8];
  for (int i = 0; i < 4; ++i) {
    t[2 * i] = _mm256_unpacklo_ps(r[2 * i], r[2 * i + 1]);
    t[2 * i + 1] = _mm256_unpackhi_ps(r[2 * i], r[2 * i + 1]);
  }
  for (int g = 0; g < 2; ++g) {
    r[4 * g] = _mm256_shuffle_ps(t[4 * g], t[4 * g + 2], 0x44);
    r[4 * g + 1] = _mm256_shuffle_ps(t[4 * g], t[4 * g + 2], 0xEE);
    r[4 * g + 2] = _mm256_shuffle_ps(t[4 * g + 1], t[4 * g + 3], 0x44);
    r[4 * g + 3] = _mm256_shuffle_ps(t[4 * g + 1], t[4 * g + 3], 0xEE);
  }
  for (int c = 0; c < 4; ++c) {
    const Vec low = _mm256_permute2f128_ps(r[c], r[4 + c], 0x20);
    r[4 + c] = _mm256_permute2f128_ps(r[c], r[4 + c], 0x31);
    r[c] = low;
  }
}

#else

inline void transpose(Vec (&rows)[16]) {
  __m512i r[16], t[16];
  for (int i = 0; i < 16; ++i) r[i] = _mm512_castps_si512(rows[i]);
  for (int i = 0; i < 8; ++i) {
    t[2 * i] = _mm512_unpacklo_epi32(r[2 * i], r[2 * i + 1]);
    t[2 * i + 1] = _mm512_unpackhi_epi32(r[2 * i], r[2 * i + 1]);
  }
  for (int g = 0; g < 4; ++g) {
    r[4 * g] = _mm512_unpacklo_epi64(t[4 * g], t[4 * g + 2]);
    r[4 * g + 1] = _mm512_unpackhi_epi64(t[4 * g], t[4 * g + 2]);
    r[4 * g + 2] = _mm512_unpacklo_epi64(t[4 * g + 1], t[4 * g + 3]);
    r[4 * g + 3] = _mm512_unpackhi_epi64(t[4 * g + 1], t[4 * g + 3]);
  }
  // Quarter q of r[4 g + c] is now column 4 q + c of rows 4 g ... 4 g + 3.
  for (int c = 0; c < 4; ++c) {
    const __m512i even_low = _mm512_shuffle_i32x4(r[c], r[4 + c], 0x88);
    const __m512i odd_low = _mm512_shuffle_i32x4(r[c], r[4 + c], 0xDD);
    const __m512i even_high = _mm512_shuffle_i32x4(r[8 + c], r[12 + c], 0x88);
    const __m512i odd_high = _mm512_shuffle_i32x4(r[8 + c], r[12 + c], 0xDD);
    rows[c] = _mm512_castsi512_ps(_mm512_shuffle_i32x4(even_low, even_high, 0x88));
    rows[8 + c] = _mm512_castsi512_ps(_mm512_shuffle_i32x4(even_low, even_high, 0xDD));
    rows[4 + c] = _mm512_castsi512_ps(_mm512_shuffle_i32x4(odd_low, odd_high, 0x88));
    rows[12 + c] = _mm512_castsi512_ps(_mm512_shuffle_i32x4(odd_low, odd_high, 0xDD));
  }
}

#endif

// How elements become units. `along` reads kLanes units that follow each other along the depth (`left` elements are
// left there), `across` one unit of each of `lanes` neighbours across.
struct FloatUnits {
  static constexpr int64_t kDepth = 1;
  template <typename T>
  static Vec along(const T* p, int64_t left) {
    return load(p, left);
  }
  template <typename T>
  static Vec across(const T* p, int64_t, int64_t, int64_t lanes) {
    return load(p, lanes);
  }
};

// bf16 arithmetic without bf16 instructions: floats rounded to bf16, multiplied as floats (exactly).
struct RoundedUnits {
  static constexpr int64_t kDepth = 1;
  static Vec rounded(Vec x) {
    bf16_t bits[kLanes];
    store(bits, x);
    return load(bits);
  }
  static Vec along(const bf16_t* p, int64_t left) { return load(p, left); }
  static Vec along(const float* p, int64_t left) { return rounded(load(p, left)); }
  static Vec across(const bf16_t* p, int64_t, int64_t, int64_t lanes) { return load(p, lanes); }
  static Vec across(const float* p, int64_t, int64_t, int64_t lanes) { return rounded(load(p, lanes)); }
};

#if defined(BRISK_ISA_avx512bf16) || defined(BRISK_ISA_amx)
struct PairUnits {
  static constexpr int64_t kDepth = 2;
  static Vec along(const bf16_t* p, int64_t left) {
    if (left >= 2 * kLanes) return _mm512_loadu_ps(p);
    return _mm512_castsi512_ps(_mm512_maskz_loadu_epi16(_bzhi_u32(0xFFFFFFFFu, static_cast<unsigned>(left)), p));
  }
  static Vec along(const float* p, int64_t left) {
    const Vec low = load(p, left), high = left > kLanes ? load(p + kLanes, left - kLanes) : zero();
    return (Vec)_mm512_cvtne2ps_pbh(high, low);
  }
  static __m512i bits(const bf16_t* p, int64_t lanes) {
    const __m256i half = lanes >= kLanes ? _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))
                                         : _mm256_maskz_loadu_epi16(lane_mask(lanes), p);
    return _mm512_cvtepu16_epi32(half);
  }
  static __m512i bits(const float* p, int64_t lanes) {
    return _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(load(p, lanes)));
  }
  template <typename T>
  static Vec across(const T* p, int64_t stride, int64_t left, int64_t lanes) {
    __m512i pair = bits(p, lanes);
    if (left > 1) pair = _mm512_or_si512(pair, _mm512_slli_epi32(bits(p + stride, lanes), 16));
    return _mm512_castsi512_ps(pair);
  }
};
#endif

// The block of kLanes units from `unit` on, and kLanes neighbours from `first` on, as one vector per unit (kByUnit) or
// per neighbour; zero outside of the source.
template <typename Units, typename T, bool kByUnit>
inline void fetch_block(const GemmPanelSource& source, int64_t first, int64_t unit, Vec (&r)[kLanes]) {
  const T* data = static_cast<const T*>(source.data);
  const int64_t depth = unit * Units::kDepth;
  if (source.depth_contiguous) {
    const int64_t left = source.depth - depth, rows = std::min(source.across - first, kLanes);
    const T* p = data + first * source.stride + depth;
    if (rows == kLanes) {
      for (int i = 0; i < kLanes; ++i) r[i] = Units::along(p + i * source.stride, left);
    } else {
      for (int i = 0; i < kLanes; ++i) r[i] = i < rows ? Units::along(p + i * source.stride, left) : zero();
    }
  } else {
    const int64_t lanes = source.across - first;
    const T* p = data + depth * source.stride + first;
    for (int u = 0; u < kLanes; ++u) {
      const int64_t left = source.depth - depth - u * Units::kDepth;
      r[u] = left > 0 && lanes > 0 ? Units::across(p + u * Units::kDepth * source.stride, source.stride, left, lanes)
                                   : zero();
    }
  }
  if (source.depth_contiguous == kByUnit) transpose(r);
}

// panel[unit][width]: width is a multiple of kLanes, or at most kLanes: then each store runs over the end of its row,
// and the next row overwrites that.
template <typename Units, typename T>
inline void pack_by_unit(const GemmPanelSource& source, int64_t width, float* panel) {
  const int64_t units = (source.depth + Units::kDepth - 1) / Units::kDepth;
  for (int64_t unit = 0; unit < units; unit += kLanes) {
    const int64_t count = std::min(units - unit, kLanes);
    for (int64_t first = 0; first < width; first += kLanes) {
      float* out = panel + unit * width + first;
      if (!source.depth_contiguous) {  // already in the panel's order: no reason to pass through a block
        const T* p = static_cast<const T*>(source.data) + unit * Units::kDepth * source.stride + first;
        const int64_t lanes = source.across - first;
        for (int64_t u = 0; u < count; ++u) {
          const int64_t left = source.depth - (unit + u) * Units::kDepth;
          store(out + u * width,
                lanes > 0 ? Units::across(p + u * Units::kDepth * source.stride, source.stride, left, lanes) : zero());
        }
        continue;
      }
      Vec block[kLanes];
      fetch_block<Units, T, true>(source, first, unit, block);
      if (count == kLanes) {
        for (int u = 0; u < kLanes; ++u) store(out + u * width, block[u]);
      } else {
        for (int u = 0; u < count; ++u) store(out + u * width, block[u]);
      }
    }
  }
}

// panel[unit / kLanes][width][kLanes units] for tiles of A, or panel[unit / kLanes][width / kLanes][kLanes][kLanes]
// with a vector per unit for tiles of B; depth padded to whole tiles.
template <typename Units, typename T, bool kByUnit>
inline void pack_by_tile(const GemmPanelSource& source, int64_t width, float* panel) {
  const int64_t units = (source.depth + Units::kDepth - 1) / Units::kDepth;
  for (int64_t unit = 0; unit < units; unit += kLanes) {
    for (int64_t first = 0; first < width; first += kLanes) {
      Vec block[kLanes];
      fetch_block<Units, T, kByUnit>(source, first, unit, block);
      for (int u = 0; u < kLanes; ++u) store(panel + u * kLanes, block[u]);
      panel += kLanes * kLanes;
    }
  }
}

}  // namespace brisk::BRISK_ISA
