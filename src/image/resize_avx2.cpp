#include <cstring>

#include "image/resize.h"

#if defined(__x86_64__)
#include <immintrin.h>
#define BRISK_AVX2 __attribute__((target("avx2")))
#endif

namespace brisk::avx2 {

#if defined(__x86_64__)

namespace {

constexpr int64_t kLanes = 8;  // two pixels of four colours, of which the last is nothing

BRISK_AVX2 inline __m128i load_4(const uint8_t* bytes) {
  int32_t four;
  std::memcpy(&four, bytes, 4);
  return _mm_cvtsi32_si128(four);
}

// The sums of eight colours as bytes: lanes 0 to 3 in the lowest 32 bits, 4 to 7 in bits 128 to 159.
BRISK_AVX2 inline __m256i rounded_colors(__m256i sums) {
  const __m256i whole = _mm256_srai_epi32(sums, ResizeWeights::kBits);
  const __m256i words = _mm256_packs_epi32(whole, whole);
  return _mm256_packus_epi16(words, words);
}

// Two rows side by side, four lanes for each pixel of each.
BRISK_AVX2 void widen_rows(const uint8_t* one, const uint8_t* two, int64_t width, int32_t* wide) {
  for (int64_t x = 0; x + 1 < width; ++x) {  // of each pixel four bytes are read
    const __m128i pair = _mm_unpacklo_epi32(load_4(one + x * kColors), load_4(two + x * kColors));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(wide + x * kLanes), _mm256_cvtepu8_epi32(pair));
  }
  int32_t* last = wide + (width - 1) * kLanes;
  for (int64_t color = 0; color < kColors; ++color) {
    last[color] = one[(width - 1) * kColors + color];
    last[4 + color] = two[(width - 1) * kColors + color];
  }
}

BRISK_AVX2 void resize_two_rows(const int32_t* wide, const ResizeWeights& weights, int64_t width, uint8_t* one,
                                uint8_t* two) {
  for (int64_t x = 0; x < width; ++x) {
    const auto [first, count] = weights.spans[static_cast<size_t>(x)];
    const int32_t* weight = weights.of(x);
    __m256i sum = _mm256_set1_epi32(1 << (ResizeWeights::kBits - 1));
    const int32_t* at = wide + first * kLanes;
    for (int64_t i = 0; i < count; ++i, at += kLanes) {
      const __m256i pixels = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
      sum = _mm256_add_epi32(sum, _mm256_mullo_epi32(pixels, _mm256_set1_epi32(weight[i])));
    }
    const __m256i colors = rounded_colors(sum);
    const int of_one = _mm_cvtsi128_si32(_mm256_castsi256_si128(colors));
    const int of_two = _mm_cvtsi128_si32(_mm256_extracti128_si256(colors, 1));
    // A fourth byte is the next pixel's, which comes after it.
    const size_t bytes = x + 1 < width ? 4 : 3;
    std::memcpy(one + x * kColors, &of_one, bytes);
    std::memcpy(two + x * kColors, &of_two, bytes);
  }
}

}  // namespace

BRISK_AVX2 void resize_rows(const Image& in, const ResizeWeights& weights, Image& out) {
  std::vector<int32_t> wide(static_cast<size_t>(in.width * kLanes), 0);
  for (int64_t y = 0; y < out.height; y += 2) {
    const int64_t other = y + 1 < out.height ? y + 1 : y;
    widen_rows(in.row(y), in.row(other), in.width, wide.data());
    resize_two_rows(wide.data(), weights, out.width, out.row(y), out.row(other));
  }
}

BRISK_AVX2 void resize_columns(const Image& in, const ResizeWeights& weights, Image& out) {
  const int64_t bytes = out.width * kColors, whole = bytes - bytes % kLanes;
  const __m256i half = _mm256_set1_epi32(1 << (ResizeWeights::kBits - 1));
  for (int64_t y = 0; y < out.height; ++y) {
    const auto [first, count] = weights.spans[static_cast<size_t>(y)];
    const int32_t* weight = weights.of(y);
    uint8_t* row = out.row(y);
    const uint8_t* above = in.row(first);
    for (int64_t x = 0; x < whole; x += kLanes) {
      __m256i sum = half;
      for (int64_t i = 0; i < count; ++i) {
        const __m128i eight = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(above + i * bytes + x));
        sum = _mm256_add_epi32(sum, _mm256_mullo_epi32(_mm256_cvtepu8_epi32(eight), _mm256_set1_epi32(weight[i])));
      }
      const __m256i colors = rounded_colors(sum);
      const __m128i joined = _mm_unpacklo_epi32(_mm256_castsi256_si128(colors), _mm256_extracti128_si256(colors, 1));
      _mm_storel_epi64(reinterpret_cast<__m128i*>(row + x), joined);
    }
    for (int64_t x = whole; x < bytes; ++x) {
      int32_t sum = 1 << (ResizeWeights::kBits - 1);
      for (int64_t i = 0; i < count; ++i) sum += weight[i] * above[i * bytes + x];
      const int32_t color = sum >> ResizeWeights::kBits;
      row[x] = static_cast<uint8_t>(color < 0 ? 0 : color > 255 ? 255 : color);
    }
  }
}

#else

void resize_rows(const Image& in, const ResizeWeights& weights, Image& out) { ref::resize_rows(in, weights, out); }
void resize_columns(const Image& in, const ResizeWeights& weights, Image& out) {
  ref::resize_columns(in, weights, out);
}

#endif

}  // namespace brisk::avx2
