// Activation functions and their slopes on vectors; included by *_isa.cpp files alone. Within 4e-7 of the reference's
// range.
#pragma once

#include "ops/activation/activation.h"
#include "ops/cpu/simd.h"

namespace brisk::BRISK_ISA {

// 1 / x within one unit in the last place: an estimate and Newton steps, since a division keeps the unit busy for 16
// cycles.
inline Vec reciprocal(Vec x) {
#if defined(BRISK_ISA_avx2)
  Vec r = _mm256_rcp_ps(x);
  r = r * fma(set1(0.0f) - x, r, set1(2.0f));
#else
  Vec r = _mm512_rcp14_ps(x);
#endif
  return r * fma(set1(0.0f) - x, r, set1(2.0f));
}

// 1 / (1 + e^-x); beyond +-87 it is 0 and 1, and the reciprocal never sees an infinity.
inline Vec sigmoid(Vec x) { return reciprocal(set1(1.0f) + exp(set1(0.0f) - x)); }

inline Vec absolute(Vec x) { return max(x, set1(0.0f) - x); }

// (1 + erf(x / sqrt 2)) / 2 by Abramowitz and Stegun's 7.1.26 (error below 1e-7), and the normal density's e^(-x x /
// 2).
struct NormalCdf {
  Vec cdf;
  Vec bell;
};
inline NormalCdf normal_cdf(Vec x) {
  const Vec z = absolute(x) * set1(0.7071067812f);
  const Vec t = reciprocal(fma(z, set1(0.3275911f), set1(1.0f)));
  Vec p = set1(1.061405429f);
  p = fma(p, t, set1(-1.453152027f));
  p = fma(p, t, set1(1.421413741f));
  p = fma(p, t, set1(-0.284496736f));
  p = fma(p, t, set1(0.254829592f));
  const Vec bell = exp(set1(0.0f) - z * z);
  const Vec tail = set1(0.5f) * p * t * bell;  // half of erfc(|z|)
  return {select_greater(x, zero(), set1(1.0f) - tail, tail), bell};
}

constexpr float kGeluInner = 0.7978845608f, kGeluCubic = 0.044715f;

// tanh's GELU is u * sigmoid(2 z), since (1 + tanh z) / 2 = sigmoid(2 z).
inline Vec gelu_tanh_gate(Vec u) {
  return sigmoid(u * fma(u * u, set1(2 * kGeluInner * kGeluCubic), set1(2 * kGeluInner)));
}

// 2 sigmoid(2 x) - 1
inline Vec hyperbolic_tangent(Vec x) { return fma(set1(2.0f), sigmoid(x + x), set1(-1.0f)); }

template <Activation kKind>
inline Vec activate(Vec u) {
  if constexpr (kKind == Activation::gelu_tanh) return u * gelu_tanh_gate(u);
  if constexpr (kKind == Activation::gelu_erf) return u * normal_cdf(u).cdf;
  if constexpr (kKind == Activation::relu) return max(u, zero());
  if constexpr (kKind == Activation::silu) return u * sigmoid(u);
  if constexpr (kKind == Activation::tanh) return hyperbolic_tangent(u);
  if constexpr (kKind == Activation::sigmoid) return sigmoid(u);
  return u;
}

template <Activation kKind>
inline Vec activate_slope(Vec u) {
  if constexpr (kKind == Activation::gelu_tanh) {
    const Vec s = gelu_tanh_gate(u);
    const Vec inner_slope = fma(u * u, set1(6 * kGeluInner * kGeluCubic), set1(2 * kGeluInner));
    return fma(u * s * (set1(1.0f) - s), inner_slope, s);
  }
  if constexpr (kKind == Activation::gelu_erf) {
    const NormalCdf normal = normal_cdf(u);
    return fma(u * set1(0.3989422804f), normal.bell, normal.cdf);
  }
  if constexpr (kKind == Activation::relu) return select_greater(u, zero(), set1(1.0f), zero());
  if constexpr (kKind == Activation::silu) {
    const Vec s = sigmoid(u);
    return s * fma(u, set1(1.0f) - s, set1(1.0f));
  }
  if constexpr (kKind == Activation::tanh) {  // 4 s (1 - s) with s = sigmoid(2 u), exact where 1 - tanh^2 would cancel
    const Vec s = sigmoid(u + u);
    return set1(4.0f) * s * (set1(1.0f) - s);
  }
  if constexpr (kKind == Activation::sigmoid) {
    const Vec s = sigmoid(u);
    return s * (set1(1.0f) - s);
  }
  return set1(1.0f);
}

// Calls body with the activation as a compile-time constant.
template <typename Body>
inline void with_activation(Activation kind, const Body& body) {
  switch (kind) {
    case Activation::none: return body.template operator()<Activation::none>();
    case Activation::gelu_tanh: return body.template operator()<Activation::gelu_tanh>();
    case Activation::gelu_erf: return body.template operator()<Activation::gelu_erf>();
    case Activation::relu: return body.template operator()<Activation::relu>();
    case Activation::silu: return body.template operator()<Activation::silu>();
    case Activation::tanh: return body.template operator()<Activation::tanh>();
    case Activation::sigmoid: return body.template operator()<Activation::sigmoid>();
  }
}

}  // namespace brisk::BRISK_ISA
