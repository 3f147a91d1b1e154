#include "ops/attention/attention_bf16_stripe_simd.h"

#if defined(__AVX512BF16__)

namespace brisk::BRISK_ISA {

namespace {

struct Bf16ForwardScratch {
  Bf16ForwardScratch(const Head& head, void* memory) {
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
                   int64_t query_head, const Bf16ForwardScratch& scratch) {
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
                     const Bf16ForwardScratch& scratch, ReadAhead& ahead) {
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

}  // namespace

int64_t bf16_forward_scratch(const Head& largest) { return Bf16ForwardScratch(largest, nullptr).bytes; }

void bf16_forward_task(const AttentionForward& op, const Head& head, const AttentionTask* next, void* memory) {
  const Bf16ForwardScratch scratch(head, memory);
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

}  // namespace brisk::BRISK_ISA

#endif
