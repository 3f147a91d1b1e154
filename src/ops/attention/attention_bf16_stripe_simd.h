// Attention with bf16 products (AMX or vdpbf16ps) and fp32 sums, for bf16 tensors.
//
// Scores are kept transposed, [keys][queries]: a row has one key, a lane one query. So maxima and sums over keys are
// plain vector operations without a look across lanes, and the transposed probabilities are, as they are, the left
// operand of dv = P^T dy and dk = dS^T q, and by pairs the right operand of y^T = v^T P^T and dq^T = k^T dS^T.
#pragma once

#include "ops/attention/attention_bf16_simd.h"
#include "ops/attention/attention_tile_simd.h"

#if defined(__AVX512BF16__)

namespace brisk::BRISK_ISA {

constexpr int64_t kStripe = kBlock32;  // queries: two vectors
constexpr int64_t kKeys = 128;         // of a block
constexpr int64_t kQueries = 128;      // of a block, backward
constexpr int64_t kStripesAtOnce = 4;
constexpr float kLog2E = 1.44269504f, kLn2 = 0.693147181f;

// Up to 32 queries against one block of keys.
struct Stripe {
  Stripe(const Head& head, int64_t first, int64_t block) : first(first), block(block) {
    queries = std::min(kStripe, head.queries - first);
    keys = std::min(kKeys, head.keys - block);
    limit0 = head.visible(first) - block;
    growth = head.growth;
    const int64_t seen = std::clamp<int64_t>(limit0 + growth * (queries - 1), 0, keys);
    rows = round_up(seen, kBlock32);
    all_see = std::clamp<int64_t>(limit0, 0, seen) / 2 * 2;
    last = block + keys >= std::min(head.keys, head.visible(first + queries - 1));
  }
  // Which of the 32 queries see key j.
  uint32_t seers(int64_t j) const {
    if (j >= keys) return 0;
    const int64_t blind = growth == 0 ? 0 : std::max<int64_t>(0, j - limit0 + 1);
    return blind >= 32 ? 0u : 0xFFFFFFFFu << blind;
  }

  int64_t first, block;
  int64_t queries, keys;
  int64_t limit0, growth;
  int64_t rows;     // keys to compute: those any query sees, rounded up
  int64_t all_see;  // the first keys, seen by every query; even
  bool last;        // no query sees a later block
};

// Draws for 32 queries at once.
struct StripeDropout {
  StripeDropout(const AttentionForward& op, int64_t head, int64_t row, int64_t queries)
      : active(op.dropout.active()), threshold(int_set1(op.dropout.threshold())) {
    if (!active) return;
    const Dropout of_head = attention_dropout(op.dropout, head);
    alignas(64) uint32_t keys[kStripe] = {};
    for (int64_t i = 0; i < queries; ++i) keys[i] = of_head.row_key(op.queries, row + i);
    row_keys[0] = _mm512_load_si512(keys);
    row_keys[1] = _mm512_load_si512(keys + kLanes);
  }
  Vec keep(Vec x, int half, int64_t key) const {
    return keep_at_least(dropout_bits(row_keys[half], static_cast<uint32_t>(key)), threshold, x);
  }
  bool active;
  IntVec threshold, row_keys[2] = {};
};

inline Vec where(uint32_t seers, int half, Vec x) {
  return _mm512_maskz_mov_ps(static_cast<__mmask16>(seers >> (16 * half)), x);
}

// 32 queries of one head, [queries, width] of t, as pairs along the columns: out[c / 2][query].
inline void pack_queries(const Tensor& t, int64_t row, int64_t queries, int64_t col, int64_t width, int64_t padded,
                         bf16_t* rows, float* out) {
  pack_bf16_rows(t, row, queries, col, width, rows, padded);
  const auto* in = reinterpret_cast<const float*>(rows);
  turn_16(in, padded / 2, padded / 2, out, kStripe);
  turn_16(in + 16 * (padded / 2), padded / 2, padded / 2, out + 16, kStripe);
}

// in[c][query] (fp32), each query times its scale, into rows of t.
inline void unpack_queries(const float* in, const Vec scale[2], const Tensor& t, int64_t row, int64_t queries,
                           int64_t col, int64_t width) {
  alignas(64) float pairs[16 * kLanes], turned[16 * kLanes];
  for (int half = 0; half < 2; ++half) {
    const int64_t count = std::min<int64_t>(16, queries - half * 16);
    for (int64_t c = 0; c < width && count > 0; c += 32) {
      for (int64_t p = 0; p < 16; ++p) {
        const float* from = in + (c + 2 * p) * kStripe + half * kLanes;
        store(pairs + p * kLanes, pair_bf16(load(from) * scale[half], load(from + kStripe) * scale[half]));
      }
      turn_16(pairs, kLanes, 16, turned, kLanes);
      const auto columns = static_cast<unsigned>(std::min<int64_t>(32, width - c));
      const __mmask32 mask = columns == 32 ? 0xFFFFFFFFu : _bzhi_u32(0xFFFFFFFFu, columns);
      for (int64_t i = 0; i < count; ++i) {
        _mm512_mask_storeu_epi16(t.bf16() + (row + half * 16 + i) * t.stride + col + c, mask,
                                 _mm512_load_si512(turned + i * kLanes));
      }
    }
  }
}

inline int64_t floats_of_bf16(int64_t count) { return (count + 1) / 2; }

// [keys, padded] -> [padded, kKeys], by way of pairs.
inline void turn_keys(const bf16_t* rows, int64_t keys, int64_t padded, float* pairs, bf16_t* out) {
  const int64_t all_rows = round_up(keys, kBlock32);
  pair_rows(rows, all_rows, padded, pairs);
  for (int64_t r = 0; r < all_rows / 2; r += 16) {
    turn_16(pairs + r * padded, padded, padded, reinterpret_cast<float*>(out) + r, kKeys / 2);
  }
}

}  // namespace brisk::BRISK_ISA

#endif
