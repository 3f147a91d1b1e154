// Attention that also tells the entropy of each row's weights, averaged over the heads. A vector of queries at a time has
// the weights of all keys in scratch, [keys, lanes], for all heads together; backward has those of every head besides.
#include "ops/attention/attention_narrow_simd.h"

namespace brisk::BRISK_ISA {

namespace {

struct Columns {
  Columns(const AttentionForward& op, const Head& head)
      : count(op.shape.heads * op.shape.head_width),
        padded(round_up(count, 16)),
        padded_keys(round_up(head.keys, 16)),
        heads(op.shape.heads) {}
  int64_t count, padded;  // of q, k, v and y
  int64_t padded_keys, heads;
};

struct EntropyForwardScratch {
  EntropyForwardScratch(const Columns& columns, void* memory) {
    Scratch scratch{memory};
    q = scratch.take(columns.padded * kLanes);
    y = scratch.take(columns.padded * kLanes);
    sums = scratch.take(columns.heads * kLanes);
    powers = scratch.take(columns.padded_keys * kLanes);
    weights = scratch.take(columns.padded_keys * kLanes);
    k = scratch.take(columns.padded * columns.padded_keys);
    v = scratch.take(columns.padded * columns.padded_keys);
    bytes = scratch.bytes();
  }
  float *q, *y;             // [columns, lanes]
  float* sums;              // [heads, lanes]: log_sum_exp
  float *powers, *weights;  // [keys, lanes]: of one head; of all
  float *k, *v;             // [keys, columns]
  int64_t bytes;
};

// Queries [first, first + lanes) of the task, all heads.
template <int kWidth, bool kDropout>
void entropy_forward(const AttentionForward& op, const Head& head, const Columns& columns, int64_t first,
                     const EntropyForwardScratch& scratch) {
  const Sight sight(head, first);
  const int64_t row = head.row + first, step = columns.padded;
  const IntVec threshold = int_set1(op.dropout.threshold());
  const Vec scale = set1(kDropout ? op.dropout.scale() : 1.0f);
  const Vec share = scale * set1(1.0f / static_cast<float>(columns.heads));
  load_columns(op.q, row, sight.lanes, 0, columns.count, op.shape.scale * kLog2OfE, scratch.q, kLanes);
  for (int64_t j = 0; j < sight.any; ++j) store(scratch.weights + j * kLanes, zero());
  for (int64_t h = 0; h < columns.heads; ++h) {
    const float *k = scratch.k + h * kWidth, *v = scratch.v + h * kWidth;
    Vec q[kWidth], sums[kWidth];
    for (int c = 0; c < kWidth; ++c) {
      q[c] = load(scratch.q + (h * kWidth + c) * kLanes);
      sums[c] = zero();
    }
    const auto score = [&](int64_t j, Vec sum) BRISK_INLINE {
      for (int c = 0; c < kWidth; ++c) sum = fma(q[c], set1(k[j * step + c]), sum);
      return sum;
    };
    Vec largest = set1(kLowestScore);
    for (int64_t j = 0; j < sight.any; ++j) {
      const Vec s = score(j, zero());
      store(scratch.powers + j * kLanes, s);
      largest = max(largest, j < sight.all ? s : sight.seen(j, s, largest));
    }
    IntVec row_keys{};
    if constexpr (kDropout) {
      alignas(64) uint32_t keys[kLanes];
      row_keys_of(op, h, row, sight.lanes, keys);
      row_keys = load_keys(keys);
    }
    Vec total = zero();
    for_each_key<kDropout>(sight.any, row_keys, [&](int64_t j, IntVec bits) BRISK_INLINE {
      Vec power = whole_power_of_two(load(scratch.powers + j * kLanes) - largest);
      if (j >= sight.all) power = sight.seen(j, power, zero());
      total = total + power;
      if constexpr (kDropout) power = keep_at_least(bits, threshold, power);
      store(scratch.powers + j * kLanes, power);
      for (int c = 0; c < kWidth; ++c) sums[c] = fma(power, set1(v[j * step + c]), sums[c]);
    });
    const Vec inverse = select_greater(total, zero(), set1(1.0f) / total, zero());
    for (int c = 0; c < kWidth; ++c) store(scratch.y + (h * kWidth + c) * kLanes, sums[c] * inverse * scale);
    store(scratch.sums + h * kLanes,
          select_greater(total, zero(), fma(largest, set1(kLogOf2), logarithm(total)), set1(-__builtin_inff())));
    const Vec factor = inverse * share;
    for (int64_t j = 0; j < sight.any; ++j) {
      float* weight = scratch.weights + j * kLanes;
      store(weight, fma(load(scratch.powers + j * kLanes), factor, load(weight)));
    }
  }
  Vec entropy = zero();
  for (int64_t j = 0; j < sight.any; ++j) {
    const Vec weight = load(scratch.weights + j * kLanes);
    entropy = entropy - weight * logarithm(weight + set1(kEntropyEpsilon));
  }
  alignas(64) float entropies[kLanes];
  store(entropies, entropy);
  for (int64_t i = 0; i < sight.lanes; ++i) op.entropy.f32()[(row + i) * op.entropy.stride] = entropies[i];
  store_columns(scratch.y, kLanes, 1.0f, op.y, row, sight.lanes, 0, columns.count);
  if (op.log_sum_exp) store_columns(scratch.sums, kLanes, 1.0f, op.log_sum_exp, row, sight.lanes, 0, columns.heads);
}

struct EntropyBackwardScratch {
  EntropyBackwardScratch(const Columns& columns, void* memory) {
    Scratch scratch{memory};
    q = scratch.take(columns.padded * kLanes);
    dy = scratch.take(columns.padded * kLanes);
    dq = scratch.take(columns.padded * kLanes);
    y = scratch.take(columns.padded * kLanes);
    powers = scratch.take(columns.heads * columns.padded_keys * kLanes);
    slopes = scratch.take(columns.padded_keys * kLanes);
    k = scratch.take(columns.padded * columns.padded_keys);
    v = scratch.take(columns.padded * columns.padded_keys);
    dk = scratch.take(columns.padded * columns.padded_keys);
    dv = scratch.take(columns.padded * columns.padded_keys);
    bytes = scratch.bytes();
  }
  float *q, *dy, *dq, *y;  // [columns, lanes]
  float* powers;           // [heads, keys, lanes]: the probabilities, those that are dropped with a minus sign
  float* slopes;           // [keys, lanes]: the mean of what is kept, then what its entropy's gradient adds
  float *k, *v;            // [keys, columns]
  float *dk, *dv;          // [columns, keys]
  int64_t bytes;
};

// dk and dv of a tile of keys and queries: powers and slopes are [queries, keys], a vector each.
template <int kWidth>
void add_key_gradients(const Vec (&ds)[kLanes], const Vec (&kept)[kLanes], const float* q, const float* dy, float* dk,
                       float* dv, int64_t step) {
  Vec key_sums[kWidth], value_sums[kWidth];
  for (int c = 0; c < kWidth; ++c) {
    key_sums[c] = load(dk + c * step);
    value_sums[c] = load(dv + c * step);
  }
  for (int64_t i = 0; i < kLanes; ++i) {
    for (int c = 0; c < kWidth; ++c) {
      key_sums[c] = fma(ds[i], set1(q[c * kLanes + i]), key_sums[c]);
      value_sums[c] = fma(kept[i], set1(dy[c * kLanes + i]), value_sums[c]);
    }
  }
  for (int c = 0; c < kWidth; ++c) {
    store(dk + c * step, key_sums[c]);
    store(dv + c * step, value_sums[c]);
  }
}

template <int kWidth, bool kDropout>
void entropy_backward(const AttentionBackward& op, const Head& head, const Columns& columns, int64_t first,
                      const EntropyBackwardScratch& scratch) {
  const AttentionForward& forward = op.forward;
  const Sight sight(head, first);
  const int64_t row = head.row + first, step = columns.padded, of_head = columns.padded_keys * kLanes;
  const IntVec threshold = int_set1(forward.dropout.threshold());
  const float dropout_scale = kDropout ? forward.dropout.scale() : 1.0f;
  const float share = dropout_scale / static_cast<float>(columns.heads);
  load_columns(forward.q, row, sight.lanes, 0, columns.count, forward.shape.scale * kLog2OfE, scratch.q, kLanes);
  load_columns(op.dy, row, sight.lanes, 0, columns.count, 1.0f, scratch.dy, kLanes);
  load_columns(forward.y, row, sight.lanes, 0, columns.count, 1.0f, scratch.y, kLanes);

  // Probabilities, and the mean of them.
  const int64_t keys = round_up(sight.any, kLanes);
  for (int64_t j = 0; j < keys; ++j) store(scratch.slopes + j * kLanes, zero());
  for (int64_t h = 0; h < columns.heads; ++h) {
    const float* k = scratch.k + h * kWidth;
    float* powers = scratch.powers + h * of_head;
    Vec q[kWidth];
    for (int c = 0; c < kWidth; ++c) q[c] = load(scratch.q + (h * kWidth + c) * kLanes);
    alignas(64) float shifts[kLanes];
    for (int64_t i = 0; i < kLanes; ++i) {
      // Rows beyond the last, and those that see nothing: no power is left of any score.
      shifts[i] = kLowestScore;
      if (i >= sight.lanes) continue;
      const float log_sum = forward.log_sum_exp.f32()[(row + i) * forward.log_sum_exp.stride + h];
      if (log_sum > kLowestScore) shifts[i] = -log_sum * kLog2OfE;
    }
    const Vec shift = load(shifts);
    IntVec row_keys{};
    if constexpr (kDropout) {
      alignas(64) uint32_t of_rows[kLanes];
      row_keys_of(forward, h, row, sight.lanes, of_rows);
      row_keys = load_keys(of_rows);
    }
    for_each_key<kDropout>(sight.any, row_keys, [&](int64_t j, IntVec bits) BRISK_INLINE {
      Vec p = shift;
      for (int c = 0; c < kWidth; ++c) p = fma(q[c], set1(k[j * step + c]), p);
      p = whole_power_of_two(p);
      if (j >= sight.all) p = sight.seen(j, p, zero());
      float* mean = scratch.slopes + j * kLanes;
      const Vec kept = kDropout ? keep_at_least(bits, threshold, p) : p;
      store(mean, load(mean) + kept);
      store(powers + j * kLanes, kDropout ? kept + kept - p : p);
    });
    for (int64_t j = sight.any; j < keys; ++j) store(powers + j * kLanes, zero());
  }

  // What the entropy's gradient adds to that of a probability that is kept.
  alignas(64) float dentropies[kLanes] = {};
  for (int64_t i = 0; i < sight.lanes; ++i) dentropies[i] = op.dentropy.f32()[(row + i) * op.dentropy.stride];
  const Vec dentropy = load(dentropies) * set1(-share);
  for (int64_t j = 0; j < keys; ++j) {
    float* slope = scratch.slopes + j * kLanes;
    const Vec mean = load(slope) * set1(share), shifted = mean + set1(kEntropyEpsilon);
    store(slope, dentropy * (logarithm(shifted) + mean / shifted));
  }

  for (int64_t h = 0; h < columns.heads; ++h) {
    const int64_t column = h * kWidth;
    const float *k = scratch.k + column, *v = scratch.v + column, *powers = scratch.powers + h * of_head;
    Vec dy[kWidth], dq[kWidth];
    Vec product = zero();
    for (int c = 0; c < kWidth; ++c) {
      dy[c] = load(scratch.dy + (column + c) * kLanes);
      dq[c] = zero();
      product = fma(dy[c], load(scratch.y + (column + c) * kLanes), product);
    }
    for (int64_t j = 0; j < sight.any; ++j) {
      product = fma(max(load(powers + j * kLanes), zero()), load(scratch.slopes + j * kLanes), product);
    }
    for (int64_t tile = 0; tile < keys; tile += kLanes) {
      Vec ds[kLanes], kept[kLanes];
      for (int64_t t = 0; t < kLanes; ++t) {
        const int64_t j = tile + t;
        const Vec p = load(powers + j * kLanes);
        kept[t] = max(p, zero());
        Vec slope = load(scratch.slopes + j * kLanes);
        for (int c = 0; c < kWidth; ++c) slope = fma(dy[c], set1(v[j * step + c]), slope);
        ds[t] = kept[t] * slope - max(p, zero() - p) * product;
        for (int c = 0; c < kWidth; ++c) dq[c] = fma(ds[t], set1(k[j * step + c]), dq[c]);
      }
      transpose_lanes(ds);
      transpose_lanes(kept);
      add_key_gradients<kWidth>(ds, kept, scratch.q + column * kLanes, scratch.dy + column * kLanes,
                                scratch.dk + column * columns.padded_keys + tile,
                                scratch.dv + column * columns.padded_keys + tile, columns.padded_keys);
    }
    for (int c = 0; c < kWidth; ++c) store(scratch.dq + (column + c) * kLanes, dq[c]);
  }
  store_columns(scratch.dq, kLanes, forward.shape.scale, op.dq, row, sight.lanes, 0, columns.count);
}

template <typename Body>
void with_entropy_width(int64_t width, const Body& body) {
  switch (width) {
    case 2: return body.template operator()<2>();
    case 4: return body.template operator()<4>();
    default: return body.template operator()<8>();
  }
}

}  // namespace

int64_t entropy_attention_scratch(const AttentionForward& op, bool backward, int64_t queries, int64_t keys) {
  const Columns columns(op, Head(op, queries, keys));
  return backward ? EntropyBackwardScratch(columns, nullptr).bytes : EntropyForwardScratch(columns, nullptr).bytes;
}

void entropy_attention_forward_task(const AttentionForward& op, const AttentionTask& task, void* memory) {
  const Head head(op, {task.sequence, 0, task.first_query, task.queries});
  const Columns columns(op, head);
  const EntropyForwardScratch scratch(columns, memory);
  load_rows(op.k, head.key_row, head.keys, head.keys, 0, columns.count, 1.0f, scratch.k, columns.padded);
  load_rows(op.v, head.key_row, head.keys, head.keys, 0, columns.count, 1.0f, scratch.v, columns.padded);
  with_entropy_width(op.shape.head_width, [&]<int kWidth>() {
    for (int64_t first = 0; first < head.queries; first += kLanes) {
      op.dropout.active() ? entropy_forward<kWidth, true>(op, head, columns, first, scratch)
                          : entropy_forward<kWidth, false>(op, head, columns, first, scratch);
    }
  });
}

void entropy_attention_backward_task(const AttentionBackward& op, const AttentionTask& task, void* memory) {
  const AttentionForward& forward = op.forward;
  const Head head(forward, {task.sequence, 0, task.first_query, task.queries});
  const Columns columns(forward, head);
  const EntropyBackwardScratch scratch(columns, memory);
  const float dropout_scale = forward.dropout.active() ? forward.dropout.scale() : 1.0f;
  load_rows(forward.k, head.key_row, head.keys, columns.padded_keys, 0, columns.count, 1.0f, scratch.k, columns.padded);
  load_rows(forward.v, head.key_row, head.keys, columns.padded_keys, 0, columns.count, dropout_scale, scratch.v,
            columns.padded);
  for (int64_t at = 0; at < columns.padded * columns.padded_keys; at += kLanes) {
    store(scratch.dk + at, zero());
    store(scratch.dv + at, zero());
  }
  with_entropy_width(forward.shape.head_width, [&]<int kWidth>() {
    for (int64_t first = 0; first < head.queries; first += kLanes) {
      forward.dropout.active() ? entropy_backward<kWidth, true>(op, head, columns, first, scratch)
                               : entropy_backward<kWidth, false>(op, head, columns, first, scratch);
    }
  });
  for (int64_t first = 0; first < head.keys; first += kLanes) {
    const int64_t rows = std::min(kLanes, head.keys - first);
    // q has the scale and log2 e in it
    store_columns(scratch.dk + first, columns.padded_keys, kLogOf2, op.dk, head.key_row + first, rows, 0,
                  columns.count);
    store_columns(scratch.dv + first, columns.padded_keys, dropout_scale, op.dv, head.key_row + first, rows, 0,
                  columns.count);
  }
}

}  // namespace brisk::BRISK_ISA
