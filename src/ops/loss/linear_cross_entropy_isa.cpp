#include "ops/cpu/simd.h"
#include "ops/loss/linear_cross_entropy_kernels.h"

namespace brisk::BRISK_ISA {

namespace {

// Logits outside of the block: they take part in nothing.
constexpr float kNoLogit = -3e38f;

Vec load_or_none(const float* p, int64_t lanes) {
  if (lanes >= kLanes) return load(p);
  float part[kLanes];
  for (int64_t i = 0; i < kLanes; ++i) part[i] = i < lanes ? p[i] : kNoLogit;
  return load(part);
}

// Smaller gradients are 0: subnormal numbers would make the products with them forty times slower.
constexpr float kLeast = 1e-30f;

// Fits the first-level cache: the largest first, then the sum, from memory once.
constexpr int64_t kBlock = 2048;

// Logits that are fetched ahead of the first look at them, of the next block or the next row: 8 % of the pass.
constexpr int64_t kAhead = 512;

// Raises the state's largest to that of the block; its place is found by looking again, which is rare once a row has
// shown a large logit.
void raise_largest(const float* logits, int64_t first, int64_t count, SoftmaxState& state) {
  Vec top[4] = {set1(kNoLogit), set1(kNoLogit), set1(kNoLogit), set1(kNoLogit)};
  Vec total[4] = {zero(), zero(), zero(), zero()};
  int64_t c = 0;
  for (; c + 4 * kLanes <= count; c += 4 * kLanes) {
    for (int v = 0; v < 4; ++v) {
      __builtin_prefetch(logits + c + v * kLanes + kAhead, 1);
      const Vec x = load(logits + c + v * kLanes);
      top[v] = max(top[v], x);
      total[v] += x;
    }
  }
  for (; c < count; c += kLanes) {
    top[0] = max(top[0], load_or_none(logits + c, count - c));
    total[0] += load(logits + c, count - c);
  }
  state.total += reduce_add((total[0] + total[1]) + (total[2] + total[3]));
  const float largest = reduce_max(max(max(top[0], top[1]), max(top[2], top[3])));
  if (largest > state.largest) {
    int64_t place = 0;
    while (place < count && logits[place] != largest) ++place;
    state.argmax = static_cast<int32_t>(first + place);
    state.sum *= reduce_max(exp(set1(std::max(state.largest, kNoLogit) - largest)));
    state.largest = largest;
  }
}

// The sum of e^(logit - largest); with kKeeps each takes the place of its logit, and the row of `next` is fetched.
template <bool kKeeps, typename Logits>
float sum_powers(Logits* logits, int64_t count, float largest, const float* next = nullptr) {
  const Vec shift = set1(largest);
  Vec sum[4] = {zero(), zero(), zero(), zero()};
  int64_t c = 0;
  for (; c + 4 * kLanes <= count; c += 4 * kLanes) {
    for (int v = 0; v < 4; ++v) {
      if constexpr (kKeeps) __builtin_prefetch(next + c + v * kLanes, 0, 2);
      const Vec power = exp(load(logits + c + v * kLanes) - shift);
      sum[v] += power;
      if constexpr (kKeeps) store(logits + c + v * kLanes, power);
    }
  }
  float rest = 0;
  for (; c < count; c += kLanes) {
    const int64_t lanes = std::min(count - c, kLanes);
    float part[kLanes];
    const Vec power = exp(load(logits + c, lanes) - shift);
    store(part, power);
    for (int64_t i = 0; i < lanes; ++i) rest += part[i];
    if constexpr (kKeeps) store(logits + c, power, lanes);
  }
  return reduce_add((sum[0] + sum[1]) + (sum[2] + sum[3])) + rest;
}

}  // namespace

void softmax_add(const float* logits, int64_t first, int64_t count, SoftmaxState& state) {
  for (int64_t c = 0; c < count; c += kBlock) {
    const int64_t size = std::min(kBlock, count - c);
    raise_largest(logits + c, first + c, size, state);
    state.sum += sum_powers<false>(logits + c, size, state.largest);
  }
}

SoftmaxState softmax_gradient(float* logits, int64_t count, const SoftmaxGradient& gradient, bool to_bf16) {
  SoftmaxState state;
  for (int64_t c = 0; c < count; c += kBlock) raise_largest(logits + c, c, std::min(kBlock, count - c), state);
  state.sum = sum_powers<true>(logits, count, state.largest, gradient.next);
  const float factor = gradient.scale / state.sum;
  const float at_target = logits[gradient.target] * factor - gradient.everywhere - gradient.less_at_target;
  const auto run = [&](auto* out) {
    const Vec scale = set1(factor), everywhere = set1(gradient.everywhere), least = set1(kLeast);
    for_columns(count, [&](int64_t c, int64_t lanes) BRISK_INLINE {
      const Vec share = load(logits + c, lanes) * scale;
      store(out + c, select_greater(share, least, share, zero()) - everywhere, lanes);
    });
  };
  if (to_bf16) {  // in place: a bf16 is written no later in memory than its float was read
    bf16_t* out = reinterpret_cast<bf16_t*>(logits);
    run(out);
    out[gradient.target] = brisk::to_bf16(at_target);
  } else {
    run(logits);
    logits[gradient.target] = at_target;
  }
  return state;
}

}  // namespace brisk::BRISK_ISA
