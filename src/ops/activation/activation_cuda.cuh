// Activation functions in kernels (ops/activation/activation.h has the formulas): exact for f32; for bf16 by the GPU's fast
// exponential, whose error is far below what bf16 keeps.
#pragma once

#include <cuda_runtime.h>

#include "ops/activation/activation.h"

namespace brisk::cuda {

template <bool kFast>
__device__ inline float exponential(float x) {
  return kFast ? __expf(x) : expf(x);
}
template <bool kFast>
__device__ inline float hyperbolic_tangent(float x) {
  return kFast ? 1.0f - __fdividef(2.0f, 1.0f + __expf(2.0f * (x > 20.0f ? 20.0f : x))) : tanhf(x);
}
template <bool kFast>
__device__ inline float logistic(float x) {
  return kFast ? __fdividef(1.0f, 1.0f + __expf(-x > 80.0f ? 80.0f : -x)) : 1.0f / (1.0f + expf(-x));
}

// e^(-x^2) and with it erf(x) to 2e-7 (Abramowitz and Stegun 7.1.26): one exponential for gelu and its slope.
struct ErrorFunction {
  float bell, erf;
};
__device__ inline ErrorFunction error_function(float x) {
  const float bell = __expf(-x * x);
  const float t = __fdividef(1.0f, 1.0f + 0.3275911f * fabsf(x));
  const float tail =
      t * (0.254829592f + t * (-0.284496736f + t * (1.421413741f + t * (-1.453152027f + t * 1.061405429f)))) * bell;
  return {bell, copysignf(1.0f - tail, x)};
}

template <Activation kKind, bool kFast>
__device__ inline float activated(float u) {
  if constexpr (kKind == Activation::gelu_tanh) {
    return 0.5f * u * (1.0f + hyperbolic_tangent<kFast>(0.7978845608f * (u + 0.044715f * u * u * u)));
  } else if constexpr (kKind == Activation::gelu_erf && kFast) {
    return 0.5f * u * (1.0f + error_function(u * 0.7071067812f).erf);
  } else if constexpr (kKind == Activation::gelu_erf) {
    return 0.5f * u * (1.0f + erff(u * 0.7071067812f));
  } else if constexpr (kKind == Activation::relu) {
    return u > 0 ? u : 0.0f;
  } else if constexpr (kKind == Activation::silu) {
    return u * logistic<kFast>(u);
  } else if constexpr (kKind == Activation::tanh) {
    return hyperbolic_tangent<kFast>(u);
  } else if constexpr (kKind == Activation::sigmoid) {
    return logistic<kFast>(u);
  } else {
    return u;
  }
}

template <Activation kKind, bool kFast>
__device__ inline float activation_slope(float u) {
  if constexpr (kKind == Activation::gelu_tanh) {
    const float t = hyperbolic_tangent<kFast>(0.7978845608f * (u + 0.044715f * u * u * u));
    return 0.5f * (1.0f + t) + 0.5f * u * (1.0f - t * t) * 0.7978845608f * (1.0f + 3 * 0.044715f * u * u);
  } else if constexpr (kKind == Activation::gelu_erf && kFast) {
    const ErrorFunction e = error_function(u * 0.7071067812f);
    return 0.5f * (1.0f + e.erf) + u * 0.3989422804f * e.bell;
  } else if constexpr (kKind == Activation::gelu_erf) {
    return 0.5f * (1.0f + erff(u * 0.7071067812f)) + u * 0.3989422804f * exponential<kFast>(-0.5f * u * u);
  } else if constexpr (kKind == Activation::relu) {
    return u > 0 ? 1.0f : 0.0f;
  } else if constexpr (kKind == Activation::silu) {
    const float s = logistic<kFast>(u);
    return s * (1.0f + u * (1.0f - s));
  } else if constexpr (kKind == Activation::tanh) {
    const float t = hyperbolic_tangent<kFast>(u);
    return 1.0f - t * t;
  } else if constexpr (kKind == Activation::sigmoid) {
    const float s = logistic<kFast>(u);
    return s * (1.0f - s);
  } else {
    return 1.0f;
  }
}

// Calls body with the activation as a type: body(ActivationTag<Activation::silu>{}).
template <Activation kKind>
struct ActivationTag {
  static constexpr Activation kind = kKind;
};
template <typename Body>
void with_activation(Activation kind, const Body& body) {
  switch (kind) {
    case Activation::none: return body(ActivationTag<Activation::none>{});
    case Activation::gelu_tanh: return body(ActivationTag<Activation::gelu_tanh>{});
    case Activation::gelu_erf: return body(ActivationTag<Activation::gelu_erf>{});
    case Activation::relu: return body(ActivationTag<Activation::relu>{});
    case Activation::silu: return body(ActivationTag<Activation::silu>{});
    case Activation::tanh: return body(ActivationTag<Activation::tanh>{});
    case Activation::sigmoid: return body(ActivationTag<Activation::sigmoid>{});
  }
}

}  // namespace brisk::cuda
