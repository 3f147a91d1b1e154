#include "ops/attention/attention_bf16_stripe_simd.h"

#if defined(__AVX512BF16__)

namespace brisk::BRISK_ISA {

namespace {

struct Bf16BackwardScratch {
  Bf16BackwardScratch(const Head& head, void* memory) {
    Scratch scratch{memory};
    padded = round_up(head.width, kBlock32);
    stripes = (head.queries + kStripe - 1) / kStripe;
    query_rows = reinterpret_cast<bf16_t*>(scratch.take(floats_of_bf16(kQueries * padded)));
    dy_rows = reinterpret_cast<bf16_t*>(scratch.take(floats_of_bf16(kQueries * padded)));
    keys = reinterpret_cast<bf16_t*>(scratch.take(floats_of_bf16(kKeys * padded)));
    values = reinterpret_cast<bf16_t*>(scratch.take(floats_of_bf16(kKeys * padded)));
    keys_turned = reinterpret_cast<bf16_t*>(scratch.take(floats_of_bf16(kKeys * padded)));
    probabilities = reinterpret_cast<bf16_t*>(scratch.take(floats_of_bf16(kKeys * kQueries)));
    dscores = reinterpret_cast<bf16_t*>(scratch.take(floats_of_bf16(kKeys * kQueries)));
    pairs = scratch.take(kKeys / 2 * padded);
    dkeys = scratch.take(kKeys * padded);
    dvalues = scratch.take(kKeys * padded);
    queries_turned = scratch.take(kQueries * padded / 2);
    dy_turned = scratch.take(kQueries * padded / 2);
    query_pairs = scratch.take(kQueries * padded / 2);
    dy_pairs = scratch.take(kQueries * padded / 2);
    stripe_scores = scratch.take(kKeys * kStripe);
    stripe_dpowers = scratch.take(kKeys * kStripe);
    stripe_dscores = scratch.take(kKeys / 2 * kStripe);
    log_sum_exp = scratch.take(kQueries);
    dy_dot_y = scratch.take(kQueries);
    dqueries = scratch.take(head.group * stripes * padded * kStripe);
    bytes = scratch.bytes();
  }
  int64_t padded, stripes;
  bf16_t *query_rows, *dy_rows;           // [kQueries, padded]
  bf16_t *keys, *values, *keys_turned;    // [kKeys, padded], [kKeys, padded], [padded, kKeys]
  bf16_t *probabilities, *dscores;        // [kKeys, kQueries]
  float* pairs;                           // on the way to keys_turned
  float *dkeys, *dvalues;                 // [kKeys, padded]
  float *queries_turned, *dy_turned;      // per stripe: pairs along the columns, [padded / 2, 32]
  float *query_pairs, *dy_pairs;          // pairs along the queries, [kQueries / 2, padded]
  float *stripe_scores, *stripe_dpowers;  // [kKeys, 32]
  float* stripe_dscores;                  // pairs along the keys, [kKeys / 2, 32]
  float *log_sum_exp, *dy_dot_y;          // [kQueries]; log_sum_exp in powers of two
  float* dqueries;                        // per head and stripe: [padded, 32]
  int64_t bytes;
};

// Scores and dy . v of a stripe become probabilities (kept ones) and the scores' gradients, in the layouts of the
// products.
void differentiate_stripe(const Stripe& stripe, const Bf16BackwardScratch& scratch, int64_t column, float scale,
                          const StripeDropout& dropout, float dropout_scale) {
  const Vec factor = set1(scale), kept_scale = set1(dropout_scale);
  Vec shift[2], mean[2];
  for (int half = 0; half < 2; ++half) {
    shift[half] = zero() - load(scratch.log_sum_exp + column + half * kLanes);
    mean[half] = load(scratch.dy_dot_y + column + half * kLanes);
  }
  const auto one_key = [&](int64_t j, bool masked) BRISK_INLINE {
    Vec p[2], ds[2];
    for (int half = 0; half < 2; ++half) {
      const int64_t at = j * kStripe + half * kLanes;
      p[half] = power_of_two(fma(load(scratch.stripe_scores + at), factor, shift[half]));
      if (masked) p[half] = where(stripe.seers(j), half, p[half]);
      Vec dp = load(scratch.stripe_dpowers + at);
      if (dropout.active) dp = dropout.keep(dp * kept_scale, half, stripe.block + j);
      ds[half] = p[half] * (dp - mean[half]);
      if (dropout.active) p[half] = dropout.keep(p[half] * kept_scale, half, stripe.block + j);
    }
    _mm512_storeu_si512(scratch.probabilities + j * kQueries + column, join_bf16(p[0], p[1]));
    const __m512i joined = join_bf16(ds[0], ds[1]);
    _mm512_storeu_si512(scratch.dscores + j * kQueries + column, joined);
    return joined;
  };
  const auto pair_of_keys = [&](int64_t j, bool masked) BRISK_INLINE {
    __m512i low, high;
    const __m512i first = one_key(j, masked), second = one_key(j + 1, masked);
    interleave(first, second, low, high);
    _mm512_storeu_si512(scratch.stripe_dscores + j / 2 * kStripe, low);
    _mm512_storeu_si512(scratch.stripe_dscores + j / 2 * kStripe + kLanes, high);
  };
  for (int64_t j = 0; j < stripe.all_see; j += 2) pair_of_keys(j, false);
  for (int64_t j = stripe.all_see; j < stripe.rows; j += 2) pair_of_keys(j, true);
}

float dot_bf16(const bf16_t* a, const bf16_t* b, int64_t width) {
  Vec sum = zero();
  for (int64_t c = 0; c < width; c += 32) {
    const auto left = static_cast<unsigned>(std::min<int64_t>(32, width - c));
    const __mmask32 mask = left == 32 ? 0xFFFFFFFFu : _bzhi_u32(0xFFFFFFFFu, left);
    sum = _mm512_dpbf16_ps(sum, (__m512bh)_mm512_maskz_loadu_epi16(mask, a + c),
                           (__m512bh)_mm512_maskz_loadu_epi16(mask, b + c));
  }
  return reduce_add(sum);
}

// Up to kQueries queries, from `first`, of one head against one block of keys. The gradients of the block's first
// `filled` keys are added to, those of the others written.
void backward_block(const AttentionBackward& op, const Head& head, int64_t first, int64_t block, int64_t g,
                    const Bf16BackwardScratch& scratch, int64_t& filled, ReadAhead& ahead) {
  const AttentionForward& forward = op.forward;
  const int64_t padded = scratch.padded, query_head = head.first_head + g, col = query_head * head.width;
  const int64_t count = std::min(kQueries, head.queries - first), row = head.row + first;
  const float dropout_scale = forward.dropout.active() ? forward.dropout.scale() : 1.0f;
  const Vec unit[2] = {set1(forward.shape.scale), set1(forward.shape.scale)};
  if (std::min(head.keys, head.visible(first + count - 1)) <= block) return;

  for (int64_t i = 0; i < round_up(count, kStripe); ++i) {
    const bool real = i < count;
    const auto* lse = forward.log_sum_exp.f32() + (row + i) * forward.log_sum_exp.stride + query_head;
    scratch.log_sum_exp[i] = real ? *lse * kLog2E : 0.0f;
    scratch.dy_dot_y[i] = real ? dot_bf16(op.dy.bf16() + (row + i) * op.dy.stride + col,
                                          forward.y.bf16() + (row + i) * forward.y.stride + col, head.width)
                               : 0.0f;
  }
  for (int64_t s = 0; s < count; s += kStripe) {
    const int64_t queries = std::min(kStripe, count - s);
    pack_queries(forward.q, row + s, queries, col, head.width, padded, scratch.query_rows + s * padded,
                 scratch.queries_turned + s * padded / 2);
    pack_queries(op.dy, row + s, queries, col, head.width, padded, scratch.dy_rows + s * padded,
                 scratch.dy_turned + s * padded / 2);
  }
  const int64_t rows = round_up(count, kStripe);
  pair_rows(scratch.query_rows, rows, padded, scratch.query_pairs);
  pair_rows(scratch.dy_rows, rows, padded, scratch.dy_pairs);

  int64_t seen[kQueries / kStripe] = {};
  for (int64_t s = 0; s < rows; s += kStripe) {
    const Stripe stripe(head, first + s, block);
    seen[s / kStripe] = stripe.rows;
    ahead.step();
    if (stripe.rows == 0) continue;
    product32(stripe.rows, kStripe, padded, {scratch.keys, padded}, {scratch.queries_turned + s * padded / 2, kStripe},
              scratch.stripe_scores, kStripe, false);
    product32(stripe.rows, kStripe, padded, {scratch.values, padded}, {scratch.dy_turned + s * padded / 2, kStripe},
              scratch.stripe_dpowers, kStripe, false);
    differentiate_stripe(stripe, scratch, s, forward.shape.scale * kLog2E,
                         StripeDropout(forward, query_head, row + s, stripe.queries), dropout_scale);
    float* dqueries = scratch.dqueries + (g * scratch.stripes + stripe.first / kStripe) * padded * kStripe;
    product32(padded, kStripe, stripe.rows, {scratch.keys_turned, kKeys}, {scratch.stripe_dscores, kStripe}, dqueries,
              kStripe, block > 0);
    if (stripe.last) unpack_queries(dqueries, unit, op.dq, row + s, stripe.queries, col, head.width);
  }
  // A block of 32 keys takes part from the first stripe that sees it.
  const int64_t seen_by_last = seen[rows / kStripe - 1];
  int64_t from = 0;
  for (int64_t j = 0; j < seen_by_last; j += kBlock32) {
    while (seen[from] <= j) ++from;
    const int64_t skip = from * kStripe, at = j * kQueries + skip;
    product32(kBlock32, padded, rows - skip, {scratch.probabilities + at, kQueries},
              {scratch.dy_pairs + skip / 2 * padded, padded}, scratch.dvalues + j * padded, padded, j < filled);
    product32(kBlock32, padded, rows - skip, {scratch.dscores + at, kQueries},
              {scratch.query_pairs + skip / 2 * padded, padded}, scratch.dkeys + j * padded, padded, j < filled);
  }
  filled = std::max(filled, seen_by_last);
}

}  // namespace

int64_t bf16_backward_scratch(const Head& largest) { return Bf16BackwardScratch(largest, nullptr).bytes; }

void bf16_backward_task(const AttentionBackward& op, const Head& head, const AttentionTask* next, void* memory) {
  const AttentionForward& forward = op.forward;
  const Bf16BackwardScratch scratch(head, memory);
  const TilesInUse tiles;
  const int64_t padded = scratch.padded;
  ReadAhead ahead = read_ahead(op, next, head.group * scratch.stripes);
  for (int64_t block = 0; block < head.keys; block += kKeys) {
    const int64_t keys = std::min(kKeys, head.keys - block), row = head.key_row + block;
    pack_bf16_rows(forward.k, row, keys, head.kv_column, head.width, scratch.keys, padded);
    pack_bf16_rows(forward.v, row, keys, head.kv_column, head.width, scratch.values, padded);
    turn_keys(scratch.keys, keys, padded, scratch.pairs, scratch.keys_turned);
    int64_t filled = 0;  // keys whose gradients have been written; the first product into them does not add
    for (int64_t g = 0; g < head.group; ++g) {
      for (int64_t first = 0; first < head.queries; first += kQueries)
        backward_block(op, head, first, block, g, scratch, filled, ahead);
    }
    for (int64_t i = filled * padded; i < keys * padded; i += kLanes) {  // keys that no query sees
      store(scratch.dkeys + i, zero());
      store(scratch.dvalues + i, zero());
    }
    for (int64_t j = 0; j < keys; ++j) {
      unpack_row(scratch.dkeys + j * padded, forward.shape.scale, op.dk, row + j, head.kv_column, head.width);
      unpack_row(scratch.dvalues + j * padded, 1.0f, op.dv, row + j, head.kv_column, head.width);
    }
  }
}

}  // namespace brisk::BRISK_ISA

#endif
