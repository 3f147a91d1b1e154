// What the kernels of narrow heads share (attention_narrow_isa.cpp, attention_entropy_isa.cpp): 16 queries (or 8) of one head
// are the lanes of a vector, and keys pass by one after the other. A score is then `width` multiplications and no sum over
// lanes, where a row of a head of two columns would leave a vector nearly empty.
#pragma once

#include "ops/attention/attention_tile_simd.h"

namespace brisk::BRISK_ISA {

constexpr float kLog2OfE = 1.44269504f, kLogOf2 = 0.693147181f;
constexpr float kLowestScore = -3.0e38f;

// 2^x within 2e-7 of it for x from -126 to 127; 2^-126 below.
inline Vec whole_power_of_two(Vec x) {
  x = max(x, set1(-126.0f));
  const Vec n = round_nearest(x), r = x - n;
  Vec p = set1(1.5403530e-4f);
  p = fma(p, r, set1(1.3333558e-3f));
  p = fma(p, r, set1(9.6181291e-3f));
  p = fma(p, r, set1(5.5504109e-2f));
  p = fma(p, r, set1(2.4022651e-1f));
  p = fma(p, r, set1(6.9314718e-1f));
  return scale_by_power(fma(p, r, set1(1.0f)), n);
}

// ln x of positive normal numbers, within 2 units in the last place: x = m 2^e with m from 2/3 to 4/3, and a polynomial.
inline Vec logarithm(Vec x) {
#if defined(BRISK_ISA_avx2)
  const __m256i bits = _mm256_castps_si256(x);
  const __m256i e = _mm256_and_si256(_mm256_sub_epi32(bits, _mm256_set1_epi32(0x3F2AAAAB)),
                                     _mm256_set1_epi32(static_cast<int>(0xFF800000)));
  const Vec m = _mm256_castsi256_ps(_mm256_sub_epi32(bits, e));
  const Vec power = _mm256_cvtepi32_ps(e) * set1(1.19209290e-7f);
#else
  const __m512i bits = _mm512_castps_si512(x);
  const __m512i e = _mm512_and_si512(_mm512_sub_epi32(bits, _mm512_set1_epi32(0x3F2AAAAB)),
                                     _mm512_set1_epi32(static_cast<int>(0xFF800000)));
  const Vec m = _mm512_castsi512_ps(_mm512_sub_epi32(bits, e));
  const Vec power = _mm512_cvtepi32_ps(e) * set1(1.19209290e-7f);
#endif
  const Vec f = m - set1(1.0f), s = f * f;
  Vec r = fma(set1(-0.130310059f), s, set1(-0.121483512f));
  Vec t = fma(set1(0.140869141f), s, set1(0.139814854f));
  r = fma(r, s, set1(-0.166846126f));
  t = fma(t, s, set1(0.200120345f));
  r = fma(r, s, set1(-0.249996200f));
  r = fma(t, f, r);
  r = fma(r, f, set1(0.333331972f));
  r = fma(r, f, set1(-0.5f));
  r = fma(r, s, f);
  return fma(power, set1(kLogOf2), r);
}

// Lanes 0, 1, 2 ...
inline Vec lane_numbers() {
#if defined(BRISK_ISA_avx2)
  return _mm256_setr_ps(0, 1, 2, 3, 4, 5, 6, 7);
#else
  return _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
#endif
}

// The first two of a transposition's stages: lane 4 L + c of vectors 4 g .. 4 g + 3 become part L of vector 4 g + c.
inline void transpose_fours(Vec* v) {
  for (int64_t g = 0; g < kLanes; g += 4) {
#if defined(BRISK_ISA_avx2)
    const Vec a = _mm256_unpacklo_ps(v[g], v[g + 1]), b = _mm256_unpackhi_ps(v[g], v[g + 1]);
    const Vec c = _mm256_unpacklo_ps(v[g + 2], v[g + 3]), d = _mm256_unpackhi_ps(v[g + 2], v[g + 3]);
    v[g] = _mm256_shuffle_ps(a, c, 0x44);
    v[g + 1] = _mm256_shuffle_ps(a, c, 0xEE);
    v[g + 2] = _mm256_shuffle_ps(b, d, 0x44);
    v[g + 3] = _mm256_shuffle_ps(b, d, 0xEE);
#else
    const Vec a = _mm512_unpacklo_ps(v[g], v[g + 1]), b = _mm512_unpackhi_ps(v[g], v[g + 1]);
    const Vec c = _mm512_unpacklo_ps(v[g + 2], v[g + 3]), d = _mm512_unpackhi_ps(v[g + 2], v[g + 3]);
    v[g] = _mm512_shuffle_ps(a, c, 0x44);
    v[g + 1] = _mm512_shuffle_ps(a, c, 0xEE);
    v[g + 2] = _mm512_shuffle_ps(b, d, 0x44);
    v[g + 3] = _mm512_shuffle_ps(b, d, 0xEE);
#endif
  }
}

// Lane j of vector i becomes lane i of vector j.
inline void transpose_lanes(Vec (&v)[kLanes]) {
  transpose_fours(v);
#if defined(BRISK_ISA_avx2)
  for (int64_t c = 0; c < 4; ++c) {
    const Vec low = v[c], high = v[4 + c];
    v[c] = _mm256_permute2f128_ps(low, high, 0x20);
    v[4 + c] = _mm256_permute2f128_ps(low, high, 0x31);
  }
#else
  for (int64_t c = 0; c < 4; ++c) {
    const Vec even = _mm512_shuffle_f32x4(v[c], v[4 + c], 0x88), odd = _mm512_shuffle_f32x4(v[c], v[4 + c], 0xDD);
    const Vec more_even = _mm512_shuffle_f32x4(v[8 + c], v[12 + c], 0x88);
    const Vec more_odd = _mm512_shuffle_f32x4(v[8 + c], v[12 + c], 0xDD);
    v[c] = _mm512_shuffle_f32x4(even, more_even, 0x88);
    v[4 + c] = _mm512_shuffle_f32x4(odd, more_odd, 0x88);
    v[8 + c] = _mm512_shuffle_f32x4(even, more_even, 0xDD);
    v[12 + c] = _mm512_shuffle_f32x4(odd, more_odd, 0xDD);
  }
#endif
}

// Lane i: the sum of the lanes of vector i. The vectors are used up.
inline Vec sum_of_each(Vec (&v)[kLanes]) {
  transpose_lanes(v);
  for (int64_t half = kLanes / 2; half > 0; half /= 2) {
    for (int64_t i = 0; i < half; ++i) v[i] = v[i] + v[i + half];
  }
  return v[0];
}

// Columns [col, col + cols) of `rows` rows, at most as many as there are lanes: lane i of out + c * stride is scale times
// column c of row i; zeros beyond.
inline void load_columns(const Tensor& t, int64_t row, int64_t rows, int64_t col, int64_t cols, float scale, float* out,
                         int64_t stride) {
  with_element(t.type, [&](auto element) {
    using T = decltype(element);
    for (int64_t first = 0; first < cols; first += kLanes) {
      const int64_t count = std::min(kLanes, cols - first);
      Vec tile[kLanes];
      for (int64_t i = 0; i < kLanes; ++i) {
        tile[i] = i < rows ? load(t.as<T>() + (row + i) * t.stride + col + first, count) * set1(scale) : zero();
      }
      transpose_lanes(tile);
      for (int64_t c = 0; c < count; ++c) store(out + (first + c) * stride, tile[c]);
    }
  });
}

// The way back.
inline void store_columns(const float* from, int64_t stride, float scale, const Tensor& t, int64_t row, int64_t rows,
                          int64_t col, int64_t cols) {
  with_element(t.type, [&](auto element) {
    using T = decltype(element);
    for (int64_t first = 0; first < cols; first += kLanes) {
      const int64_t count = std::min(kLanes, cols - first);
      Vec tile[kLanes];
      for (int64_t c = 0; c < kLanes; ++c)
        tile[c] = c < count ? load(from + (first + c) * stride) * set1(scale) : zero();
      transpose_lanes(tile);
      for (int64_t i = 0; i < rows; ++i) store(t.as<T>() + (row + i) * t.stride + col + first, tile[i], count);
    }
  });
}

// Rows as they lie, in f32, `padded` floats apart; zeros from `rows` to `zero_to`.
inline void load_rows(const Tensor& t, int64_t row, int64_t rows, int64_t zero_to, int64_t col, int64_t cols,
                      float scale, float* out, int64_t padded) {
  with_element(t.type, [&](auto element) {
    using T = decltype(element);
    for (int64_t j = 0; j < rows; ++j) {
      const T* from = t.as<T>() + (row + j) * t.stride + col;
      for_columns(cols, [&](int64_t c, int64_t lanes)
                            BRISK_INLINE { store(out + j * padded + c, load(from + c, lanes) * set1(scale)); });
    }
  });
  for (int64_t at = rows * padded; at < zero_to * padded; at += kLanes) store(out + at, zero());
}

inline void store_rows(const float* from, int64_t padded, float scale, const Tensor& t, int64_t row, int64_t rows,
                       int64_t col, int64_t cols) {
  with_element(t.type, [&](auto element) {
    using T = decltype(element);
    for (int64_t j = 0; j < rows; ++j) {
      T* to = t.as<T>() + (row + j) * t.stride + col;
      for_columns(cols, [&](int64_t c, int64_t lanes)
                            BRISK_INLINE { store(to + c, load(from + j * padded + c) * set1(scale), lanes); });
    }
  });
}

// Which keys the queries of one vector see: all of them those before `all`, some of them those before `any`.
struct Sight {
  Sight(const Head& head, int64_t first)
      : lanes(std::min(kLanes, head.queries - first)),
        all(std::clamp<int64_t>(head.visible(first), 0, head.keys)),
        any(std::clamp<int64_t>(head.visible(first + lanes - 1), 0, head.keys)),
        limits(fma(set1(static_cast<float>(head.growth)), lane_numbers(),
                   set1(static_cast<float>(head.visible(first))))) {}
  // x where the lane's query sees key j, `otherwise` elsewhere.
  Vec seen(int64_t j, Vec x, Vec otherwise) const {
    return select_greater(limits, set1(static_cast<float>(j)), x, otherwise);
  }
  int64_t lanes, all, any;
  Vec limits;
};

// The keys of the draws of a head's queries (ops/dropout.h), a lane each.
inline void row_keys_of(const AttentionForward& op, int64_t head, int64_t row, int64_t rows, uint32_t* keys) {
  const Dropout dropout = attention_dropout(op.dropout, head);
  for (int64_t i = 0; i < kLanes; ++i) keys[i] = i < rows ? dropout.row_key(op.queries, row + i) : 0;
}
inline IntVec load_keys(const uint32_t* keys) { return int_load(reinterpret_cast<const float*>(keys)); }

// Calls body(j, bits) for keys [0, keys), with the draws of all lanes: keys j and j + 8 share one. `keep_all`: none is made.
template <bool kDropout, typename Body>
inline void for_each_key(int64_t keys, IntVec row_keys, const Body& body) {
  if constexpr (!kDropout) {
    for (int64_t j = 0; j < keys; ++j) body(j, IntVec{});
    return;
  }
  for (int64_t base = 0; base < keys; base += 16) {
    for (int64_t j = base; j < std::min(base + 8, keys); ++j) {
      const IntVec bits = random_bits_of(int_xor(row_keys, int_set1(static_cast<uint32_t>(j) * 0x9E3779B9u)));
      body(j, int_shift_left(bits, int_set1(16)));
      if (j + 8 < keys) body(j + 8, bits);
    }
  }
}

}  // namespace brisk::BRISK_ISA
