// Heads at most four columns wide. A task has as many heads as fill a cache line of q, k and v.
//
// Of MU (models/mu.h; 6 layers, 4,096 rows of T = 128, fp32, two cores) all attention takes 30 ms a step so, and 84 with the
// kernels of wider heads, which make a vector of each row of a head. With tasks of two heads, a block of MU each, it took
// 36; with tasks of all 32 it was the same 30.
#include "ops/attention/attention_narrow_simd.h"

namespace brisk::BRISK_ISA {

namespace {

// The heads of one task, and where its copies lie.
struct NarrowHeads {
  NarrowHeads(const AttentionForward& op, const AttentionTask& task)
      : head(op, {task.sequence, 0, task.first_query, task.queries}) {
    const int64_t most = kNarrowColumns / op.shape.head_width;
    first = task.kv_head * most;
    count = std::min(most, op.shape.heads - first);
    set_sizes(op);
  }
  // Sizes alone.
  NarrowHeads(const AttentionForward& op, int64_t queries, int64_t keys) : head(op, queries, keys) {
    count = kNarrowColumns / op.shape.head_width;
    set_sizes(op);
  }
  void set_sizes(const AttentionForward& op) {
    column = first * op.shape.head_width;
    columns = count * op.shape.head_width;
    padded_queries = round_up(head.queries, kLanes);
    padded_keys = round_up(head.keys, 16);
  }

  Head head;  // its group is that of one head, and its keys' column the first
  int64_t first = 0, count = 0;
  int64_t column = 0, columns = 0;  // of q, k, v and y
  int64_t padded_queries = 0, padded_keys = 0;
};

// Rows of the copies of k and v: a cache line.
constexpr int64_t kRow = kNarrowColumns;

struct NarrowForwardScratch {
  NarrowForwardScratch(const NarrowHeads& heads, void* memory) {
    Scratch scratch{memory};
    q = scratch.take(kRow * heads.padded_queries);
    y = scratch.take(kRow * heads.padded_queries);
    sums = scratch.take(heads.count * heads.padded_queries);
    k = scratch.take(kRow * heads.padded_keys);
    v = scratch.take(kRow * heads.padded_keys);
    bytes = scratch.bytes();
  }
  float *q, *y;  // [columns, padded_queries]
  float* sums;   // [heads, padded_queries]: log_sum_exp
  float *k, *v;  // [padded_keys, kRow]
  int64_t bytes;
};

template <int kWidth, bool kDropout>
void narrow_forward(const AttentionForward& op, const NarrowHeads& heads, const NarrowForwardScratch& scratch) {
  const Head& head = heads.head;
  const IntVec threshold = int_set1(op.dropout.threshold());
  const Vec scale = set1(kDropout ? op.dropout.scale() : 1.0f);
  for (int64_t h = 0; h < heads.count; ++h) {
    const float *k = scratch.k + h * kWidth, *v = scratch.v + h * kWidth;
    for (int64_t first = 0; first < head.queries; first += kLanes) {
      const Sight sight(head, first);
      Vec q[kWidth], sums[kWidth];
      for (int c = 0; c < kWidth; ++c) {
        q[c] = load(scratch.q + (h * kWidth + c) * heads.padded_queries + first);
        sums[c] = zero();
      }
      const auto score = [&](int64_t j, Vec sum) BRISK_INLINE {
        for (int c = 0; c < kWidth; ++c) sum = fma(q[c], set1(k[j * kRow + c]), sum);
        return sum;
      };
      Vec largest = set1(kLowestScore);
      for (int64_t j = 0; j < sight.all; ++j) largest = max(largest, score(j, zero()));
      for (int64_t j = sight.all; j < sight.any; ++j) largest = max(largest, sight.seen(j, score(j, zero()), largest));

      IntVec row_keys{};
      if constexpr (kDropout) {
        alignas(64) uint32_t keys[kLanes];
        row_keys_of(op, heads.first + h, head.row + first, sight.lanes, keys);
        row_keys = load_keys(keys);
      }
      const Vec shift = zero() - largest;
      Vec total = zero();
      for_each_key<kDropout>(sight.any, row_keys, [&](int64_t j, IntVec bits) BRISK_INLINE {
        Vec power = whole_power_of_two(score(j, shift));
        if (j >= sight.all) power = sight.seen(j, power, zero());
        total = total + power;
        if constexpr (kDropout) power = keep_at_least(bits, threshold, power);
        for (int c = 0; c < kWidth; ++c) sums[c] = fma(power, set1(v[j * kRow + c]), sums[c]);
      });
      const Vec factor = select_greater(total, zero(), scale / total, zero());
      for (int c = 0; c < kWidth; ++c) {
        store(scratch.y + (h * kWidth + c) * heads.padded_queries + first, sums[c] * factor);
      }
      store(scratch.sums + h * heads.padded_queries + first,
            select_greater(total, zero(), fma(largest, set1(kLogOf2), logarithm(total)), set1(-__builtin_inff())));
    }
  }
}

struct NarrowBackwardScratch {
  NarrowBackwardScratch(const NarrowHeads& heads, void* memory) {
    Scratch scratch{memory};
    q = scratch.take(kRow * heads.padded_queries);
    dy = scratch.take(kRow * heads.padded_queries);
    dq = scratch.take(kRow * heads.padded_queries);
    y = scratch.take(kRow * kLanes);
    log_sums = scratch.take(heads.count * heads.padded_queries);
    products = scratch.take(heads.count * heads.padded_queries);
    row_keys = reinterpret_cast<uint32_t*>(scratch.take(heads.count * heads.padded_queries));
    k = scratch.take(kRow * heads.padded_keys);
    v = scratch.take(kRow * heads.padded_keys);
    dk = scratch.take(kRow * heads.padded_keys);
    dv = scratch.take(kRow * heads.padded_keys);
    bytes = scratch.bytes();
  }
  float *q, *dy, *dq;          // [columns, padded_queries]
  float* y;                    // [columns, kLanes]
  float *log_sums, *products;  // [heads, padded_queries]: the base-2 logarithm of the sum of powers; dy . y
  uint32_t* row_keys;          // [heads, padded_queries]
  float *k, *v, *dk, *dv;      // [padded_keys, kRow]
  int64_t bytes;
};

void pack_for_backward(const AttentionBackward& op, const NarrowHeads& heads, int64_t width,
                       const NarrowBackwardScratch& scratch) {
  const AttentionForward& forward = op.forward;
  const Head& head = heads.head;
  const int64_t step = heads.padded_queries;
  const float dropout_scale = forward.dropout.active() ? forward.dropout.scale() : 1.0f;
  for (int64_t first = 0; first < head.queries; first += kLanes) {
    const int64_t row = head.row + first, rows = std::min(kLanes, head.queries - first);
    load_columns(forward.q, row, rows, heads.column, heads.columns, forward.shape.scale * kLog2OfE, scratch.q + first,
                 step);
    load_columns(op.dy, row, rows, heads.column, heads.columns, 1.0f, scratch.dy + first, step);
    load_columns(forward.y, row, rows, heads.column, heads.columns, 1.0f, scratch.y, kLanes);
    for (int64_t c = 0; c < heads.columns; ++c) store(scratch.dq + c * step + first, zero());
    for (int64_t h = 0; h < heads.count; ++h) {
      Vec product = zero();
      for (int64_t c = h * width; c < (h + 1) * width; ++c) {
        product = fma(load(scratch.dy + c * step + first), load(scratch.y + c * kLanes), product);
      }
      store(scratch.products + h * step + first, product);
      float* log_sums = scratch.log_sums + h * step + first;
      for (int64_t i = 0; i < kLanes; ++i) {
        // Rows beyond the last, and those that see nothing: no power is left of any score.
        float log_sum = -__builtin_inff();
        if (i < rows) {
          log_sum = forward.log_sum_exp.f32()[(row + i) * forward.log_sum_exp.stride + heads.first + h];
        }
        log_sums[i] = log_sum < kLowestScore ? -kLowestScore : log_sum * kLog2OfE;
      }
      if (forward.dropout.active()) {
        row_keys_of(forward, heads.first + h, row, rows, scratch.row_keys + h * step + first);
      }
    }
  }
  load_rows(forward.k, head.key_row, head.keys, heads.padded_keys, heads.column, heads.columns, 1.0f, scratch.k, kRow);
  load_rows(forward.v, head.key_row, head.keys, heads.padded_keys, heads.column, heads.columns, dropout_scale,
            scratch.v, kRow);
}

// Some keys at a time, so that their gradients stay in registers while all queries pass by: keys j and j + 8, which share
// their draws, and as many more such pairs as fill a vector with sums.
template <int kWidth, bool kDropout>
void narrow_backward(const AttentionBackward& op, const NarrowHeads& heads, const NarrowBackwardScratch& scratch) {
  constexpr int kPairs = static_cast<int>(kLanes) / (4 * kWidth) > 0 ? static_cast<int>(kLanes) / (4 * kWidth) : 1;
  constexpr int kKeys = 2 * kPairs;
  static_assert(kKeys * kWidth <= kLanes && 8 % kPairs == 0);
  const Head& head = heads.head;
  const int64_t step = heads.padded_queries;
  const IntVec threshold = int_set1(op.forward.dropout.threshold());
  const float dropout_scale = kDropout ? op.forward.dropout.scale() : 1.0f;
  for (int64_t h = 0; h < heads.count; ++h) {
    const int64_t column = h * kWidth;
    const float *q_of = scratch.q + column * step, *dy_of = scratch.dy + column * step;
    float* dq_of = scratch.dq + column * step;
    for (int64_t base = 0; base < head.keys; base += 16) {
      for (int64_t t = base; t < std::min(base + 8, head.keys); t += kPairs) {
        Vec dk[kKeys][kWidth], dv[kKeys][kWidth];
        for (int key = 0; key < kKeys; ++key) {
          for (int c = 0; c < kWidth; ++c) dk[key][c] = dv[key][c] = zero();
        }
        const int64_t unseeing =
            head.growth == 0 ? 0 : std::clamp<int64_t>(t + 1 - head.first_visible, 0, head.queries);
        for (int64_t first = unseeing / kLanes * kLanes; first < head.queries; first += kLanes) {
          const Sight sight(head, first);
          const Vec log_sum = load(scratch.log_sums + h * step + first);
          const Vec product = load(scratch.products + h * step + first);
          Vec q[kWidth], dy[kWidth], dq[kWidth];
          for (int c = 0; c < kWidth; ++c) {
            q[c] = load(q_of + c * step + first);
            dy[c] = load(dy_of + c * step + first);
            dq[c] = load(dq_of + c * step + first);
          }
          const bool all_see = t + kPairs + 7 < sight.all;
          const auto add_key = [&](int key, int64_t j, IntVec bits) BRISK_INLINE {
            const float *k = scratch.k + j * kRow + column, *v = scratch.v + j * kRow + column;
            Vec score = zero() - log_sum, slope = zero();
            for (int c = 0; c < kWidth; ++c) score = fma(q[c], set1(k[c]), score);
            for (int c = 0; c < kWidth; ++c) slope = fma(dy[c], set1(v[c]), slope);
            Vec p = whole_power_of_two(score);
            if (!all_see) p = sight.seen(j, p, zero());
            const Vec kept = kDropout ? keep_at_least(bits, threshold, p) : p;
            const Vec ds = kept * slope - p * product;
            for (int c = 0; c < kWidth; ++c) {
              dv[key][c] = fma(kept, dy[c], dv[key][c]);
              dk[key][c] = fma(ds, q[c], dk[key][c]);
              dq[c] = fma(ds, set1(k[c]), dq[c]);
            }
          };
          for (int pair = 0; pair < kPairs; ++pair) {
            const int64_t j = t + pair;
            IntVec bits{}, low{};
            if constexpr (kDropout) {
              bits = random_bits_of(int_xor(load_keys(scratch.row_keys + h * step + first),
                                            int_set1(static_cast<uint32_t>(j) * 0x9E3779B9u)));
              low = int_shift_left(bits, int_set1(16));
            }
            add_key(2 * pair, j, low);
            add_key(2 * pair + 1, j + 8, bits);
          }
          for (int c = 0; c < kWidth; ++c) store(dq_of + c * step + first, dq[c]);
        }
        const auto put = [&](const Vec(&sums)[kKeys][kWidth], float factor, float* to) BRISK_INLINE {
          Vec lanes[kLanes];
          for (int64_t i = 0; i < kLanes; ++i) lanes[i] = i < kKeys * kWidth ? sums[i / kWidth][i % kWidth] : zero();
          alignas(64) float numbers[kLanes];
          store(numbers, sum_of_each(lanes) * set1(factor));
          for (int key = 0; key < kKeys; ++key) {
            const int64_t j = t + key / 2 + key % 2 * 8;
            for (int c = 0; c < kWidth; ++c) to[j * kRow + column + c] = numbers[key * kWidth + c];
          }
        };
        put(dk, kLogOf2, scratch.dk);  // q has the scale and log2 e in it
        put(dv, dropout_scale, scratch.dv);
      }
    }
  }
}

template <typename Body>
void with_narrow_width(int64_t width, const Body& body) {
  switch (width) {
    case 1: return body.template operator()<1>();
    case 2: return body.template operator()<2>();
    case 3: return body.template operator()<3>();
    default: return body.template operator()<4>();
  }
}

}  // namespace

int64_t narrow_attention_scratch(const AttentionForward& op, bool backward, int64_t queries, int64_t keys) {
  const NarrowHeads heads(op, queries, keys);
  return backward ? NarrowBackwardScratch(heads, nullptr).bytes : NarrowForwardScratch(heads, nullptr).bytes;
}

void narrow_attention_forward_task(const AttentionForward& op, const AttentionTask& task, void* memory) {
  const NarrowHeads heads(op, task);
  const Head& head = heads.head;
  const NarrowForwardScratch scratch(heads, memory);
  const int64_t step = heads.padded_queries;
  for (int64_t first = 0; first < head.queries; first += kLanes) {
    load_columns(op.q, head.row + first, std::min(kLanes, head.queries - first), heads.column, heads.columns,
                 op.shape.scale * kLog2OfE, scratch.q + first, step);
  }
  load_rows(op.k, head.key_row, head.keys, heads.padded_keys, heads.column, heads.columns, 1.0f, scratch.k, kRow);
  load_rows(op.v, head.key_row, head.keys, heads.padded_keys, heads.column, heads.columns, 1.0f, scratch.v, kRow);
  with_narrow_width(op.shape.head_width, [&]<int kWidth>() {
    op.dropout.active() ? narrow_forward<kWidth, true>(op, heads, scratch)
                        : narrow_forward<kWidth, false>(op, heads, scratch);
  });
  for (int64_t first = 0; first < head.queries; first += kLanes) {
    const int64_t rows = std::min(kLanes, head.queries - first);
    store_columns(scratch.y + first, step, 1.0f, op.y, head.row + first, rows, heads.column, heads.columns);
    if (op.log_sum_exp) {
      store_columns(scratch.sums + first, step, 1.0f, op.log_sum_exp, head.row + first, rows, heads.first, heads.count);
    }
  }
}

void narrow_attention_backward_task(const AttentionBackward& op, const AttentionTask& task, void* memory) {
  const NarrowHeads heads(op.forward, task);
  const Head& head = heads.head;
  const NarrowBackwardScratch scratch(heads, memory);
  pack_for_backward(op, heads, op.forward.shape.head_width, scratch);
  with_narrow_width(op.forward.shape.head_width, [&]<int kWidth>() {
    op.forward.dropout.active() ? narrow_backward<kWidth, true>(op, heads, scratch)
                                : narrow_backward<kWidth, false>(op, heads, scratch);
  });
  for (int64_t first = 0; first < head.queries; first += kLanes) {
    store_columns(scratch.dq + first, heads.padded_queries, op.forward.shape.scale, op.dq, head.row + first,
                  std::min(kLanes, head.queries - first), heads.column, heads.columns);
  }
  store_rows(scratch.dk, kRow, 1.0f, op.dk, head.key_row, head.keys, heads.column, heads.columns);
  store_rows(scratch.dv, kRow, 1.0f, op.dv, head.key_row, head.keys, heads.column, heads.columns);
}

}  // namespace brisk::BRISK_ISA
