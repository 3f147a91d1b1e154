// Attention with bf16 products (AMX or vdpbf16ps) and fp32 sums, for bf16 tensors.
//
// Scores are kept transposed, [keys][queries]: a row has one key, a lane one query. So maxima and sums over keys are
// plain vector operations without a look across lanes, and the transposed probabilities are, as they are, the left
// operand of dv = P^T dy and dk = dS^T q, and by pairs the right operand of y^T = v^T P^T and dq^T = k^T dS^T.
#include "ops/attention_bf16_simd.h"
#include "ops/attention_tile_simd.h"

#if defined(__AVX512BF16__)

namespace brisk::BRISK_ISA {

namespace {

constexpr int64_t kStripe = kBlock32;  // queries: two vectors
constexpr int64_t kKeys = 128;         // of a block
constexpr int64_t kQueries = 128;      // of a block, backward
constexpr int64_t kStripesAtOnce = 4;
constexpr float kLog2E = 1.44269504f, kLn2 = 0.693147181f;
constexpr float kLowest = -3.0e38f;

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
    const uint64_t key = random_key({op.dropout.key, static_cast<uint64_t>(head)});
    alignas(64) uint32_t keys[kStripe] = {};
    for (int64_t i = 0; i < queries; ++i) {
      keys[i] = random_row_key(key, static_cast<uint32_t>(op.queries.sequence[row + i]),
                               static_cast<uint32_t>(op.queries.position[row + i]));
    }
    row_keys[0] = _mm512_load_si512(keys);
    row_keys[1] = _mm512_load_si512(keys + kLanes);
  }
  Vec keep(Vec x, int half, int64_t key) const {
    return keep_at_least(random_bits(row_keys[half], static_cast<uint32_t>(key)), threshold, x);
  }
  bool active;
  IntVec threshold, row_keys[2] = {};
};

inline Vec where(uint32_t seers, int half, Vec x) {
  return _mm512_maskz_mov_ps(static_cast<__mmask16>(seers >> (16 * half)), x);
}

// 32 queries of one head, [queries, width] of t, as pairs along the columns: out[c / 2][query].
void pack_queries(const Tensor& t, int64_t row, int64_t queries, int64_t col, int64_t width, int64_t padded,
                  bf16_t* rows, float* out) {
  pack_bf16_rows(t, row, queries, col, width, rows, padded);
  const auto* in = reinterpret_cast<const float*>(rows);
  turn_16(in, padded / 2, padded / 2, out, kStripe);
  turn_16(in + 16 * (padded / 2), padded / 2, padded / 2, out + 16, kStripe);
}

// in[c][query] (fp32), each query times its scale, into rows of t.
void unpack_queries(const float* in, const Vec scale[2], const Tensor& t, int64_t row, int64_t queries, int64_t col,
                    int64_t width) {
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

int64_t floats_of_bf16(int64_t count) { return (count + 1) / 2; }

struct ForwardScratch {
  ForwardScratch(const Head& head, void* memory) {
    Scratch scratch{memory};
    padded = round_up(head.width, kBlock32);
    stripes = (head.queries + kStripe - 1) / kStripe;
    rows = reinterpret_cast<bf16_t*>(scratch.take(floats_of_bf16(kKeys * padded)));
    keys = reinterpret_cast<bf16_t*>(scratch.take(floats_of_bf16(kKeys * padded)));
    values = reinterpret_cast<bf16_t*>(scratch.take(floats_of_bf16(kKeys * padded)));
    pairs = scratch.take(kKeys / 2 * padded);
    scores = scratch.take(kStripesAtOnce * kKeys * kStripe);
    powers = scratch.take(kStripesAtOnce * kKeys / 2 * kStripe);
    queries = scratch.take(head.group * stripes * padded / 2 * kStripe);
    sums = scratch.take(head.group * stripes * padded * kStripe);
    largest = scratch.take(head.group * stripes * kStripe);
    total = scratch.take(head.group * stripes * kStripe);
    bytes = scratch.bytes();
  }
  int64_t padded, stripes;
  bf16_t* rows;            // on the way to other layouts
  bf16_t *keys, *values;   // [kKeys, padded], and transposed [padded, kKeys]
  float* pairs;            // on the way to values
  float *scores, *powers;  // [kKeys, 32]; pairs along the keys
  float *queries, *sums;   // per head and stripe: pairs [padded / 2, 32]; sum of p v so far, [padded, 32]
  float *largest, *total;  // per head and query
  int64_t bytes;
};

// Scores to powers 2^(score - largest), by pairs of keys; maxima and sums move on. `correction` is what the sums so far
// must be multiplied by.
void soften_stripe(const Stripe& stripe, const float* scores, float* powers, float scale, const StripeDropout& dropout,
                   float* largest, float* total, Vec correction[2]) {
  const Vec factor = set1(scale);
  Vec highest[2] = {set1(kLowest), set1(kLowest)};
  for (int64_t j = 0; j < stripe.all_see; ++j) {
    for (int half = 0; half < 2; ++half) {
      highest[half] = max(highest[half], load(scores + j * kStripe + half * kLanes) * factor);
    }
  }
  for (int64_t j = stripe.all_see; j < std::min(stripe.rows, stripe.keys); ++j) {
    const uint32_t seers = stripe.seers(j);
    for (int half = 0; half < 2; ++half) {
      const auto mask = static_cast<__mmask16>(seers >> (16 * half));
      const Vec score = load(scores + j * kStripe + half * kLanes) * factor;
      highest[half] = _mm512_mask_max_ps(highest[half], mask, highest[half], score);
    }
  }
  Vec shift[2], sum[2] = {zero(), zero()};
  for (int half = 0; half < 2; ++half) {
    const Vec before = load(largest + half * kLanes), now = max(before, highest[half]);
    correction[half] = power_of_two(before - now);
    shift[half] = zero() - now;
    store(largest + half * kLanes, now);
  }
  const auto pair_of_keys = [&](int64_t j, bool masked) BRISK_INLINE {
    for (int half = 0; half < 2; ++half) {
      const float* at = scores + j * kStripe + half * kLanes;
      Vec first = power_of_two(fma(load(at), factor, shift[half]));
      Vec second = power_of_two(fma(load(at + kStripe), factor, shift[half]));
      if (masked) {
        first = where(stripe.seers(j), half, first);
        second = where(stripe.seers(j + 1), half, second);
      }
      sum[half] = sum[half] + (first + second);
      if (dropout.active) {
        first = dropout.keep(first, half, stripe.block + j);
        second = dropout.keep(second, half, stripe.block + j + 1);
      }
      store(powers + j / 2 * kStripe + half * kLanes, pair_bf16(first, second));
    }
  };
  for (int64_t j = 0; j < stripe.all_see; j += 2) pair_of_keys(j, false);
  for (int64_t j = stripe.all_see; j < stripe.rows; j += 2) pair_of_keys(j, true);
  for (int half = 0; half < 2; ++half) {
    store(total + half * kLanes, fma(load(total + half * kLanes), correction[half], sum[half]));
  }
}

// y and log_sum_exp of a stripe that has seen all its keys.
void finish_stripe(const AttentionForward& op, const Head& head, const Stripe& stripe, int64_t number,
                   int64_t query_head, const ForwardScratch& scratch) {
  const int64_t row = head.row + stripe.first;
  const float *largest = scratch.largest + number * kStripe, *total = scratch.total + number * kStripe;
  const Vec dropout_scale = set1(op.dropout.active() ? op.dropout.scale() : 1.0f);
  Vec scale[2];
  for (int half = 0; half < 2; ++half) {
    const Vec sum = load(total + half * kLanes);
    scale[half] = select_greater(sum, zero(), dropout_scale / sum, zero());
  }
  unpack_queries(scratch.sums + number * scratch.padded * kStripe, scale, op.y, row, stripe.queries,
                 query_head * head.width, head.width);
  if (!op.log_sum_exp) return;
  alignas(64) float log_sum_exp[kStripe];
  for (int64_t half = 0; half < kStripe; half += kLanes) {
    const Vec sum = load(total + half), log_sum = set1(kLn2) * (load(largest + half) + log_two(sum));
    store(log_sum_exp + half, select_greater(sum, zero(), log_sum, set1(-__builtin_inff())));
  }
  float* out = op.log_sum_exp.f32() + row * op.log_sum_exp.stride + query_head;
  for (int64_t i = 0; i < stripe.queries; ++i) out[i * op.log_sum_exp.stride] = log_sum_exp[i];
}

// Up to kStripesAtOnce stripes of one head, from the first, against one block of keys. All scores, then all powers,
// then all sums: a tile that is loaded right after it was stored waits for the store to leave the core.
void forward_stripes(const AttentionForward& op, const Head& head, int64_t first, int64_t block, int64_t g,
                     const ForwardScratch& scratch, ReadAhead& ahead) {
  const int64_t padded = scratch.padded, query_head = head.first_head + g;
  const bool fresh = block == 0;
  const int64_t end = std::min(first + kStripesAtOnce * kStripe, head.queries);
  const auto number = [&](int64_t s) { return g * scratch.stripes + s / kStripe; };
  const auto scores = [&](int64_t s) { return scratch.scores + (s - first) * kKeys; };
  const auto powers = [&](int64_t s) { return scratch.powers + (s - first) * kKeys / 2; };

  for (int64_t s = first; s < end; s += kStripe) {
    const Stripe stripe(head, s, block);
    product32(stripe.rows, kStripe, padded, {scratch.keys, padded},
              {scratch.queries + number(s) * padded / 2 * kStripe, kStripe}, scores(s), kStripe, false);
  }
  for (int64_t s = first; s < end; s += kStripe) {
    ahead.step();
    const Stripe stripe(head, s, block);
    if (stripe.rows == 0) continue;
    float *largest = scratch.largest + number(s) * kStripe, *total = scratch.total + number(s) * kStripe;
    for (int64_t i = 0; fresh && i < kStripe; ++i) largest[i] = kLowest, total[i] = 0;
    Vec correction[2];
    soften_stripe(stripe, scores(s), powers(s), op.shape.scale * kLog2E,
                  StripeDropout(op, query_head, head.row + s, stripe.queries), largest, total, correction);
    float* sums = scratch.sums + number(s) * padded * kStripe;
    for (int64_t c = 0; !fresh && c < padded; ++c) {
      for (int half = 0; half < 2; ++half) {
        float* sum = sums + c * kStripe + half * kLanes;
        store(sum, load(sum) * correction[half]);
      }
    }
  }
  for (int64_t s = first; s < end; s += kStripe) {
    const Stripe stripe(head, s, block);
    if (stripe.rows == 0) continue;
    product32(padded, kStripe, stripe.rows, {scratch.values, kKeys}, {powers(s), kStripe},
              scratch.sums + number(s) * padded * kStripe, kStripe, !fresh);
  }
  for (int64_t s = first; s < end; s += kStripe) {
    const Stripe stripe(head, s, block);
    if (stripe.rows > 0 && stripe.last) finish_stripe(op, head, stripe, number(s), query_head, scratch);
  }
}

struct BackwardScratch {
  BackwardScratch(const Head& head, void* memory) {
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
void differentiate_stripe(const Stripe& stripe, const BackwardScratch& scratch, int64_t column, float scale,
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
                    const BackwardScratch& scratch, int64_t& filled, ReadAhead& ahead) {
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

// [keys, padded] -> [padded, kKeys], by way of pairs.
void turn_keys(const bf16_t* rows, int64_t keys, int64_t padded, float* pairs, bf16_t* out) {
  const int64_t all_rows = round_up(keys, kBlock32);
  pair_rows(rows, all_rows, padded, pairs);
  for (int64_t r = 0; r < all_rows / 2; r += 16) {
    turn_16(pairs + r * padded, padded, padded, reinterpret_cast<float*>(out) + r, kKeys / 2);
  }
}

}  // namespace

int64_t bf16_forward_scratch(const Head& largest) { return ForwardScratch(largest, nullptr).bytes; }
int64_t bf16_backward_scratch(const Head& largest) { return BackwardScratch(largest, nullptr).bytes; }

void bf16_forward_task(const AttentionForward& op, const Head& head, const AttentionTask* next, void* memory) {
  const ForwardScratch scratch(head, memory);
  const TilesInUse tiles;
  const int64_t padded = scratch.padded;
  ReadAhead ahead = read_ahead(op, next, head.group * scratch.stripes);
  for (int64_t g = 0; g < head.group; ++g) {
    for (int64_t s = 0; s < scratch.stripes; ++s) {
      pack_queries(op.q, head.row + s * kStripe, std::min(kStripe, head.queries - s * kStripe),
                   (head.first_head + g) * head.width, head.width, padded, scratch.rows,
                   scratch.queries + (g * scratch.stripes + s) * padded / 2 * kStripe);
    }
  }
  for (int64_t block = 0; block < head.keys; block += kKeys) {
    const int64_t keys = std::min(kKeys, head.keys - block), row = head.key_row + block;
    pack_bf16_rows(op.k, row, keys, head.kv_column, head.width, scratch.keys, padded);
    pack_bf16_rows(op.v, row, keys, head.kv_column, head.width, scratch.rows, padded);
    turn_keys(scratch.rows, keys, padded, scratch.pairs, scratch.values);
    for (int64_t g = 0; g < head.group; ++g) {
      for (int64_t first = 0; first < head.queries; first += kStripesAtOnce * kStripe) {
        forward_stripes(op, head, first, block, g, scratch, ahead);
      }
    }
  }
}

void bf16_backward_task(const AttentionBackward& op, const Head& head, const AttentionTask* next, void* memory) {
  const AttentionForward& forward = op.forward;
  const BackwardScratch scratch(head, memory);
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
