// Packing of an operand into panels of 4-byte units (gemm_kernels.h); included by gemm_isa.cpp alone.
//
// An operand is read in square blocks of kLanes units by kLanes rows (or columns): kLanes vectors in the order of
// memory, transposed in registers where the panel wants the other order.
#pragma once

#include "ops/cpu/simd.h"
#include "ops/gemm/gemm_kernels.h"

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

// The same from memory, `offset` elements along eight rows: the halves of four rows below join those above while they
// are loaded, which no shuffle has to do.
template <typename T>
inline void transpose_memory(const T* const (&row)[8], int64_t offset, Vec (&r)[8]) {
  Vec z[2][4];
  for (int i = 0; i < 4; ++i) {
    const float* low = reinterpret_cast<const float*>(row[i] + offset);
    const float* high = reinterpret_cast<const float*>(row[4 + i] + offset);
    for (int q = 0; q < 2; ++q) {
      z[q][i] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(low + 4 * q)), _mm_loadu_ps(high + 4 * q), 1);
    }
  }
  for (int q = 0; q < 2; ++q) {
    const Vec t0 = _mm256_unpacklo_ps(z[q][0], z[q][1]), t1 = _mm256_unpackhi_ps(z[q][0], z[q][1]);
    const Vec t2 = _mm256_unpacklo_ps(z[q][2], z[q][3]), t3 = _mm256_unpackhi_ps(z[q][2], z[q][3]);
    r[4 * q] = _mm256_shuffle_ps(t0, t2, 0x44);
    r[4 * q + 1] = _mm256_shuffle_ps(t0, t2, 0xEE);
    r[4 * q + 2] = _mm256_shuffle_ps(t1, t3, 0x44);
    r[4 * q + 3] = _mm256_shuffle_ps(t1, t3, 0xEE);
  }
}

#else

// From memory, `offset` elements along sixteen rows: quarters of four rows join in one vector while they are loaded, so
// that half of the shuffles remain.
template <typename T>
inline void transpose_memory(const T* const (&row)[16], int64_t offset, Vec (&r)[16]) {
  __m512 z[4][4];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const float* p0 = reinterpret_cast<const float*>(row[i] + offset);
    const float* p1 = reinterpret_cast<const float*>(row[4 + i] + offset);
    const float* p2 = reinterpret_cast<const float*>(row[8 + i] + offset);
    const float* p3 = reinterpret_cast<const float*>(row[12 + i] + offset);
#pragma GCC unroll 4
    for (int q = 0; q < 4; ++q) {
      __m512 x = _mm512_castps128_ps512(_mm_loadu_ps(p0 + 4 * q));
      x = _mm512_mask_broadcast_f32x4(x, 0x00F0, _mm_loadu_ps(p1 + 4 * q));
      x = _mm512_mask_broadcast_f32x4(x, 0x0F00, _mm_loadu_ps(p2 + 4 * q));
      z[q][i] = _mm512_mask_broadcast_f32x4(x, 0xF000, _mm_loadu_ps(p3 + 4 * q));
    }
  }
#pragma GCC unroll 4
  for (int q = 0; q < 4; ++q) {
    const __m512d t0 = _mm512_castps_pd(_mm512_unpacklo_ps(z[q][0], z[q][1]));
    const __m512d t1 = _mm512_castps_pd(_mm512_unpackhi_ps(z[q][0], z[q][1]));
    const __m512d t2 = _mm512_castps_pd(_mm512_unpacklo_ps(z[q][2], z[q][3]));
    const __m512d t3 = _mm512_castps_pd(_mm512_unpackhi_ps(z[q][2], z[q][3]));
    r[4 * q] = _mm512_castpd_ps(_mm512_unpacklo_pd(t0, t2));
    r[4 * q + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(t0, t2));
    r[4 * q + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(t1, t3));
    r[4 * q + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(t1, t3));
  }
}

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
// left there), `across` one unit of each of `lanes` neighbours across, `across_one` the same where only half a unit is
// left.
struct FloatUnits {
  static constexpr int64_t kDepth = 1;
  template <typename T>
  static constexpr bool is_raw() {
    return sizeof(T) == 4;
  }
  template <typename T>
  static Vec along(const T* p, int64_t left) {
    return load(p, left);
  }
  template <typename T>
  static Vec across(const T* p, int64_t, int64_t lanes) {
    return load(p, lanes);
  }
  template <typename T>
  static Vec across_one(const T* p, int64_t lanes) {
    return load(p, lanes);
  }
};

// bf16 arithmetic without bf16 instructions: floats rounded to bf16, multiplied as floats (exactly).
struct RoundedUnits {
  static constexpr int64_t kDepth = 1;
  template <typename T>
  static constexpr bool is_raw() {
    return false;
  }
  static Vec read(const bf16_t* p, int64_t lanes) { return load(p, lanes); }
  static Vec read(const float* p, int64_t lanes) {
    bf16_t bits[kLanes];
    store(bits, load(p, lanes));
    return load(bits);
  }
  template <typename T>
  static Vec along(const T* p, int64_t left) {
    return read(p, left);
  }
  template <typename T>
  static Vec across(const T* p, int64_t, int64_t lanes) {
    return read(p, lanes);
  }
  template <typename T>
  static Vec across_one(const T* p, int64_t lanes) {
    return read(p, lanes);
  }
};

#if defined(BRISK_ISA_avx512bf16) || defined(BRISK_ISA_amx)
struct PairUnits {
  static constexpr int64_t kDepth = 2;
  template <typename T>
  static constexpr bool is_raw() {
    return sizeof(T) == 2;
  }
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
  static Vec across(const T* p, int64_t stride, int64_t lanes) {
    return _mm512_castsi512_ps(_mm512_or_si512(bits(p, lanes), _mm512_slli_epi32(bits(p + stride, lanes), 16)));
  }
  template <typename T>
  static Vec across_one(const T* p, int64_t lanes) {
    return _mm512_castsi512_ps(bits(p, lanes));
  }
};
#endif

// Where kLanes neighbours across begin, each a row of memory; the last one is repeated where there are fewer.
template <typename T>
struct RowStarts {
  const T* row[kLanes];
  RowStarts(const GemmPanelSource& source, int64_t first) {
    const T* p = static_cast<const T*>(source.data) + first * source.stride;
    const int64_t most = source.across - first - 1;
    for (int64_t i = 0; i < kLanes; ++i) {
      row[i] = p;
      if (i < most) p += source.stride;
    }
  }
};

// Their kLanes units from `depth` elements on, as one vector per unit of depth: a transposition in registers.
template <typename Units, typename T>
inline void transposed_block(const RowStarts<T>& starts, int64_t depth, int64_t left, Vec (&r)[kLanes]) {
  if constexpr (Units::template is_raw<T>()) {
    if (left >= kLanes * Units::kDepth) return transpose_memory(starts.row, depth, r);
  }
  for (int i = 0; i < kLanes; ++i) r[i] = Units::along(starts.row[i] + depth, left);
  transpose(r);
}

// Units ahead that are asked for where the depth lies across memory: rows far apart, which no hardware fetches ahead.
// As many as gemm packs of a panel before it goes on with the next one, so they are of the same panel's next stretch.
constexpr int64_t kPackAhead = 32;

// panel[unit][width], with width a multiple of kLanes. What lies beyond the source across is anything; what lies beyond
// it along the depth is not written.
template <typename Units, typename T>
inline void pack_by_unit(const GemmPanelSource& source, int64_t width, float* panel) {
  const int64_t units = (source.depth + Units::kDepth - 1) / Units::kDepth;
  if (source.depth_contiguous) {
    for (int64_t first = 0; first < std::min(width, source.across); first += kLanes) {
      const RowStarts<T> starts(source, first);
      for (int64_t unit = 0; unit < units; unit += kLanes) {
        const int64_t count = std::min(units - unit, kLanes), depth = unit * Units::kDepth;
        float* out = panel + unit * width + first;
        Vec block[kLanes];
        transposed_block<Units, T>(starts, depth, source.depth - depth, block);
        if (count == kLanes) {
          for (int u = 0; u < kLanes; ++u) store(out + u * width, block[u]);
        } else {
          for (int u = 0; u < count; ++u) store(out + u * width, block[u]);
        }
      }
    }
    return;
  }
  const int64_t whole = source.depth / Units::kDepth,
                step = Units::kDepth * source.stride;  // units without a remainder
  for (int64_t first = 0; first < std::min(width, source.across); first += kLanes) {
    const T* p = static_cast<const T*>(source.data) + first;
    float* out = panel + first;
    const int64_t lanes = source.across - first;
    if (lanes >= kLanes) {
#pragma GCC unroll 4
      for (int64_t u = 0; u < whole; ++u) {
        __builtin_prefetch(p + (u + kPackAhead) * step, 0, 2);
        store(out + u * width, Units::across(p + u * step, source.stride, kLanes));
      }
    } else {
#pragma GCC unroll 4
      for (int64_t u = 0; u < whole; ++u) {
        __builtin_prefetch(p + (u + kPackAhead) * step, 0, 2);
        store(out + u * width, Units::across(p + u * step, source.stride, lanes));
      }
    }
    if (whole < units) store(out + whole * width, Units::across_one(p + whole * step, lanes));
  }
}

#if defined(BRISK_ISA_amx)
// Two tiles side by side from 32 rows along the depth of 32 neighbours across: pairs of rows are interleaved, which
// leaves the neighbours in the order 0-3, 8-11, 16-19, 24-27 in one vector and the others in the second.
template <bool kByUnit>
inline void pack_two_tiles(const bf16_t* p, int64_t stride, float* out) {
  __m512 low[kLanes], high[kLanes];
  for (int u = 0; u < kLanes; ++u) {
    const __m512i even = _mm512_loadu_si512(p + 2 * u * stride), odd = _mm512_loadu_si512(p + (2 * u + 1) * stride);
    low[u] = _mm512_castsi512_ps(_mm512_unpacklo_epi16(even, odd));
    high[u] = _mm512_castsi512_ps(_mm512_unpackhi_epi16(even, odd));
    if constexpr (kByUnit) {
      const __m512i first_half = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
      const __m512i second_half = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
      const __m512i a = _mm512_castps_si512(low[u]), b = _mm512_castps_si512(high[u]);
      store(out + u * kLanes, _mm512_castsi512_ps(_mm512_permutex2var_epi64(a, first_half, b)));
      store(out + (kLanes + u) * kLanes, _mm512_castsi512_ps(_mm512_permutex2var_epi64(a, second_half, b)));
    }
  }
  if constexpr (!kByUnit) {
    transpose(low);
    for (int i = 0; i < kLanes; ++i) store(out + (8 * (i / 4) + i % 4) * kLanes, low[i]);
    transpose(high);
    for (int i = 0; i < kLanes; ++i) store(out + (8 * (i / 4) + 4 + i % 4) * kLanes, high[i]);
  }
}

// Tiles of 16 x 16 units, one after the other: panel[unit / 16][width / 16][16][16], with a vector per unit (tiles of
// B) or per neighbour across (tiles of A). Depth is padded with zeros to whole tiles; what lies beyond the source
// across is anything.
template <typename T, bool kByUnit>
inline void pack_by_tile(GemmPanelSource source, int64_t width, float* panel) {
  using Units = PairUnits;
  if constexpr (sizeof(T) == 2) {
    if (!source.depth_contiguous && width == 2 * kLanes && source.across >= width) {
      const T* p = static_cast<const T*>(source.data);
      for (; source.depth >= 2 * kLanes; source.depth -= 2 * kLanes, panel += 2 * kLanes * kLanes) {
        pack_two_tiles<kByUnit>(p, source.stride, panel);
        p += 2 * kLanes * source.stride;
      }
      source.data = p;
    }
  }
  const int64_t units = (source.depth + Units::kDepth - 1) / Units::kDepth;
  for (int64_t first = 0; first < std::min(width, source.across); first += kLanes) {
    const int64_t lanes = source.across - first;
    if (source.depth_contiguous) {
      const RowStarts<T> starts(source, first);
      for (int64_t unit = 0; unit < units; unit += kLanes) {
        const int64_t depth = unit * Units::kDepth, left = source.depth - depth;
        float* out = panel + unit * width + first * kLanes;
        Vec block[kLanes];
        if constexpr (kByUnit) {
          transposed_block<Units, T>(starts, depth, left, block);
        } else {
          for (int i = 0; i < kLanes; ++i) block[i] = Units::along(starts.row[i] + depth, left);
        }
        for (int u = 0; u < kLanes; ++u) store(out + u * kLanes, block[u]);
      }
      continue;
    }
    for (int64_t unit = 0; unit < units; unit += kLanes) {
      const int64_t depth = unit * Units::kDepth, left = source.depth - depth;
      const T* p = static_cast<const T*>(source.data) + depth * source.stride + first;
      float* out = panel + unit * width + first * kLanes;
      Vec block[kLanes];
      if (left >= 2 * kLanes && lanes >= kLanes) {
        for (int u = 0; u < kLanes; ++u) block[u] = Units::across(p + 2 * u * source.stride, source.stride, kLanes);
      } else {
        for (int u = 0; u < kLanes; ++u) {
          const T* q = p + 2 * u * source.stride;
          block[u] = left >= 2 * u + 2   ? Units::across(q, source.stride, lanes)
                     : left == 2 * u + 1 ? Units::across_one(q, lanes)
                                         : zero();
        }
      }
      if constexpr (!kByUnit) transpose(block);
      for (int u = 0; u < kLanes; ++u) store(out + u * kLanes, block[u]);
    }
  }
}
#endif

}  // namespace brisk::BRISK_ISA
