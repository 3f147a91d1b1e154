// The vector type of the instruction set a file is compiled for (BRISK_ISA, see CMakeLists.txt): 8 floats with AVX2, 16
// with AVX-512. Included by *_isa.cpp files alone. Arithmetic is the compiler's own on the type: a * b + c.
//
//   for (int64_t i = 0; i < n; i += kLanes) {
//     const int64_t lanes = std::min(n - i, kLanes);
//     store(y + i, load(x + i, lanes) * two, lanes);
//   }
#pragma once

// GCC 12's own AVX-512 headers pass an undefined register on purpose, and warn of it where they are inlined.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <immintrin.h>

#include <algorithm>
#include <cstdint>

#include "tensor/dtype.h"

namespace brisk::BRISK_ISA {

#if defined(BRISK_ISA_avx2)

constexpr int64_t kLanes = 8;
using Vec = __m256;
using IntVec = __m256i;

inline Vec set1(float x) { return _mm256_set1_ps(x); }
inline Vec zero() { return _mm256_setzero_ps(); }
inline Vec fma(Vec a, Vec b, Vec c) { return _mm256_fmadd_ps(a, b, c); }
inline Vec max(Vec a, Vec b) { return _mm256_max_ps(a, b); }
inline Vec min(Vec a, Vec b) { return _mm256_min_ps(a, b); }
inline Vec sqrt(Vec a) { return _mm256_sqrt_ps(a); }
inline Vec round_nearest(Vec a) { return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
inline Vec scale_by_power(Vec a, Vec power) {  // a * 2^power, power whole and in the normal range
  const __m256i bits = _mm256_slli_epi32(_mm256_cvtps_epi32(power), 23);
  return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(a), bits));
}
inline Vec select_greater(Vec a, Vec b, Vec yes, Vec no) {
  return _mm256_blendv_ps(no, yes, _mm256_cmp_ps(a, b, _CMP_GT_OQ));
}

inline __m256i lane_mask(int64_t lanes) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(lanes)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
inline Vec first_lanes(Vec x, int64_t lanes) {
  return lanes >= kLanes ? x : _mm256_and_ps(x, _mm256_castsi256_ps(lane_mask(lanes)));
}
inline Vec first_lanes(Vec x, int64_t lanes, Vec rest) {
  return lanes >= kLanes ? x : _mm256_blendv_ps(rest, x, _mm256_castsi256_ps(lane_mask(lanes)));
}
inline Vec swap_pairs(Vec x) { return _mm256_permute_ps(x, 0xB1); }  // lanes 1 0 3 2 ...
inline Vec load(const float* p) { return _mm256_loadu_ps(p); }
inline Vec load(const float* p, int64_t lanes) {
  return lanes >= kLanes ? load(p) : _mm256_maskload_ps(p, lane_mask(lanes));
}
inline void store(float* p, Vec x) { _mm256_storeu_ps(p, x); }
inline void store(float* p, Vec x, int64_t lanes) {
  if (lanes >= kLanes) return store(p, x);
  _mm256_maskstore_ps(p, lane_mask(lanes), x);
}
inline Vec load(const bf16_t* p) {
  const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
}
inline __m128i round_to_bf16(Vec x) {  // nearest even; NaN stays NaN
  const __m256i bits = _mm256_castps_si256(x);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  __m256i rounded = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7FFF)));
  const __m256 is_nan = _mm256_cmp_ps(x, x, _CMP_UNORD_Q);
  rounded =
      _mm256_blendv_epi8(rounded, _mm256_or_si256(bits, _mm256_set1_epi32(0x400000)), _mm256_castps_si256(is_nan));
  rounded = _mm256_srli_epi32(rounded, 16);
  return _mm_packus_epi32(_mm256_castsi256_si128(rounded), _mm256_extracti128_si256(rounded, 1));
}
inline void store(bf16_t* p, Vec x) { _mm_storeu_si128(reinterpret_cast<__m128i*>(p), round_to_bf16(x)); }
inline Vec load(const bf16_t* p, int64_t lanes) {
  if (lanes >= kLanes) return load(p);
  bf16_t part[kLanes] = {};
  std::copy(p, p + lanes, part);
  return load(part);
}
inline void store(bf16_t* p, Vec x, int64_t lanes) {
  if (lanes >= kLanes) return store(p, x);
  bf16_t part[kLanes];
  store(part, x);
  std::copy(part, part + lanes, p);
}
inline float reduce_add(Vec x) {
  __m128 s = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
  s = _mm_add_ps(s, _mm_movehl_ps(s, s));
  return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}
inline float reduce_max(Vec x) {
  __m128 s = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
  s = _mm_max_ps(s, _mm_movehl_ps(s, s));
  return _mm_cvtss_f32(_mm_max_ss(s, _mm_movehdup_ps(s)));
}

inline IntVec int_set1(uint32_t x) { return _mm256_set1_epi32(static_cast<int>(x)); }
inline IntVec int_iota() { return _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7); }
inline IntVec int_add(IntVec a, IntVec b) { return _mm256_add_epi32(a, b); }
inline IntVec int_mul(IntVec a, IntVec b) { return _mm256_mullo_epi32(a, b); }
inline IntVec int_xor(IntVec a, IntVec b) { return _mm256_xor_si256(a, b); }
inline IntVec int_and_not(IntVec a, IntVec b) { return _mm256_andnot_si256(a, b); }  // ~a & b
inline IntVec int_shift_left(IntVec a, IntVec counts) { return _mm256_sllv_epi32(a, counts); }
inline IntVec int_or(IntVec a, IntVec b) { return _mm256_or_si256(a, b); }
inline IntVec int_load(const float* p) { return _mm256_castps_si256(_mm256_loadu_ps(p)); }  // the bits
inline bool int_is_zero(IntVec a) { return _mm256_testz_si256(a, a) != 0; }
template <int kBits>
inline IntVec int_shift_right(IntVec a) {
  return _mm256_srli_epi32(a, kBits);
}
// value where bits >= threshold (unsigned), 0 elsewhere
inline Vec keep_at_least(IntVec bits, IntVec threshold, Vec value) {
  const __m256i keep = _mm256_cmpeq_epi32(_mm256_max_epu32(bits, threshold), bits);
  return _mm256_and_ps(value, _mm256_castsi256_ps(keep));
}

#else

constexpr int64_t kLanes = 16;
using Vec = __m512;
using IntVec = __m512i;

inline Vec set1(float x) { return _mm512_set1_ps(x); }
inline Vec zero() { return _mm512_setzero_ps(); }
inline Vec fma(Vec a, Vec b, Vec c) { return _mm512_fmadd_ps(a, b, c); }
inline Vec max(Vec a, Vec b) { return _mm512_max_ps(a, b); }
inline Vec min(Vec a, Vec b) { return _mm512_min_ps(a, b); }
inline Vec sqrt(Vec a) { return _mm512_sqrt_ps(a); }
inline Vec round_nearest(Vec a) { return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
inline Vec scale_by_power(Vec a, Vec power) { return _mm512_scalef_ps(a, power); }
inline Vec select_greater(Vec a, Vec b, Vec yes, Vec no) {
  return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_GT_OQ), no, yes);
}

inline __mmask16 lane_mask(int64_t lanes) {
  return static_cast<__mmask16>(_bzhi_u32(0xFFFF, static_cast<unsigned>(lanes)));
}
inline Vec first_lanes(Vec x, int64_t lanes) { return lanes >= kLanes ? x : _mm512_maskz_mov_ps(lane_mask(lanes), x); }
inline Vec first_lanes(Vec x, int64_t lanes, Vec rest) {
  return lanes >= kLanes ? x : _mm512_mask_mov_ps(rest, lane_mask(lanes), x);
}
inline Vec swap_pairs(Vec x) { return _mm512_permute_ps(x, 0xB1); }
inline Vec load(const float* p) { return _mm512_loadu_ps(p); }
inline Vec load(const float* p, int64_t lanes) {
  return lanes >= kLanes ? load(p) : _mm512_maskz_loadu_ps(lane_mask(lanes), p);
}
inline void store(float* p, Vec x) { _mm512_storeu_ps(p, x); }
inline void store(float* p, Vec x, int64_t lanes) {
  if (lanes >= kLanes) return store(p, x);
  _mm512_mask_storeu_ps(p, lane_mask(lanes), x);
}
inline Vec widen(__m256i bits) { return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16)); }
inline Vec load(const bf16_t* p) { return widen(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))); }
inline Vec load(const bf16_t* p, int64_t lanes) {
  return lanes >= kLanes ? load(p) : widen(_mm256_maskz_loadu_epi16(lane_mask(lanes), p));
}
inline __m256i round_to_bf16(Vec x) {  // nearest even; NaN stays NaN
#if defined(__AVX512BF16__)
  return (__m256i)_mm512_cvtneps_pbh(x);
#else
  const __m512i bits = _mm512_castps_si512(x);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  __m512i rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7FFF)));
  rounded = _mm512_mask_or_epi32(rounded, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), bits, _mm512_set1_epi32(0x400000));
  return _mm512_cvtepi32_epi16(_mm512_srli_epi32(rounded, 16));
#endif
}
inline void store(bf16_t* p, Vec x) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), round_to_bf16(x)); }
inline void store(bf16_t* p, Vec x, int64_t lanes) {
  if (lanes >= kLanes) return store(p, x);
  _mm256_mask_storeu_epi16(p, lane_mask(lanes), round_to_bf16(x));
}
inline float reduce_add(Vec x) { return _mm512_reduce_add_ps(x); }
inline float reduce_max(Vec x) { return _mm512_reduce_max_ps(x); }

inline IntVec int_set1(uint32_t x) { return _mm512_set1_epi32(static_cast<int>(x)); }
inline IntVec int_iota() { return _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15); }
inline IntVec int_add(IntVec a, IntVec b) { return _mm512_add_epi32(a, b); }
inline IntVec int_mul(IntVec a, IntVec b) { return _mm512_mullo_epi32(a, b); }
inline IntVec int_xor(IntVec a, IntVec b) { return _mm512_xor_si512(a, b); }
inline IntVec int_and_not(IntVec a, IntVec b) { return _mm512_andnot_si512(a, b); }  // ~a & b
inline IntVec int_shift_left(IntVec a, IntVec counts) { return _mm512_sllv_epi32(a, counts); }
inline IntVec int_or(IntVec a, IntVec b) { return _mm512_or_si512(a, b); }
inline IntVec int_load(const float* p) { return _mm512_loadu_si512(p); }  // the bits
inline bool int_is_zero(IntVec a) { return _mm512_test_epi32_mask(a, a) == 0; }
template <int kBits>
inline IntVec int_shift_right(IntVec a) {
  return _mm512_srli_epi32(a, kBits);
}
inline Vec keep_at_least(IntVec bits, IntVec threshold, Vec value) {
  return _mm512_maskz_mov_ps(_mm512_cmpge_epu32_mask(bits, threshold), value);
}

#endif

// e^x within 2 units in the last place; 0 below -87.3, the largest finite power above 88.
inline Vec exp(Vec x) {
  x = min(max(x, set1(-87.33f)), set1(88.0f));
  const Vec n = round_nearest(x * set1(1.44269504f));
  Vec r = fma(n, set1(-0.693359375f), x);
  r = fma(n, set1(2.12194440e-4f), r);
  Vec p = set1(1.9875691500e-4f);
  p = fma(p, r, set1(1.3981999507e-3f));
  p = fma(p, r, set1(8.3334519073e-3f));
  p = fma(p, r, set1(4.1665795894e-2f));
  p = fma(p, r, set1(1.6666665459e-1f));
  p = fma(p, r, set1(5.0000001201e-1f));
  return scale_by_power(fma(p, r * r, r + set1(1.0f)), n);
}

// dropout_bits (base/random.h) for columns first, first + 1, ...
inline IntVec random_bits_of(IntVec x);
inline IntVec dropout_bits(uint32_t row_key, uint32_t first_column) {
  const IntVec column = int_add(int_set1(first_column), int_iota());
  const IntVec shared = int_and_not(int_set1(8), column), lower = int_and_not(column, int_set1(8));
  const IntVec bits = random_bits_of(int_xor(int_set1(row_key), int_mul(shared, int_set1(0x9E3779B9u))));
  return int_shift_left(bits, int_add(lower, lower));
}
// ... and for one column of several rows.
inline IntVec dropout_bits(IntVec row_keys, uint32_t column) {
  const IntVec bits = random_bits_of(int_xor(row_keys, int_set1((column & ~8u) * 0x9E3779B9u)));
  return int_shift_left(bits, int_set1((~column & 8u) << 1));
}
inline IntVec random_bits_of(IntVec x) {
  x = int_mul(int_xor(x, int_shift_right<16>(x)), int_set1(0x7FEB352Du));
  x = int_mul(int_xor(x, int_shift_right<15>(x)), int_set1(0x846CA68Bu));
  return int_xor(x, int_shift_right<16>(x));
}

// Calls body(column, lanes) for [0, n): whole vectors with a constant kLanes, then what is left.
// Mark the body BRISK_INLINE: it is called from two places.
#define BRISK_INLINE __attribute__((always_inline))
template <typename Body>
inline void for_columns(int64_t n, const Body& body) {
  int64_t c = 0;
  for (; c + kLanes <= n; c += kLanes) body(c, kLanes);
  if (c < n) body(c, n - c);
}

// Calls body with a value of the element type: with_element(x.type, [&](auto of_x) { rows<decltype(of_x)>(...); });
template <typename Body>
inline void with_element(DType type, const Body& body) {
  if (type == DType::bf16) {
    body(bf16_t{});
  } else {
    body(float{});
  }
}

}  // namespace brisk::BRISK_ISA
