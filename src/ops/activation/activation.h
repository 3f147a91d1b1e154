// Activation functions, as an argument of `linear` and `gated`.
#pragma once

#include <cmath>
#include <cstdint>

#include "base/host_device.h"

namespace brisk {

enum class Activation : uint8_t { none, gelu_tanh, gelu_erf, relu, silu, tanh, sigmoid };

// The reference of each function and its derivative.
BRISK_HOST_DEVICE inline float activate(Activation kind, float u) {
  switch (kind) {
    case Activation::none: return u;
    case Activation::gelu_tanh: return 0.5f * u * (1.0f + std::tanh(0.7978845608f * (u + 0.044715f * u * u * u)));
    case Activation::gelu_erf: return 0.5f * u * (1.0f + std::erf(u * 0.7071067812f));
    case Activation::relu: return u > 0 ? u : 0;
    case Activation::silu: return u / (1.0f + std::exp(-u));
    case Activation::tanh: return std::tanh(u);
    case Activation::sigmoid: return 1.0f / (1.0f + std::exp(-u));
  }
  return u;
}

BRISK_HOST_DEVICE inline float activate_slope(Activation kind, float u) {
  switch (kind) {
    case Activation::none: return 1;
    case Activation::gelu_tanh: {
      const float t = std::tanh(0.7978845608f * (u + 0.044715f * u * u * u));
      return 0.5f * (1.0f + t) + 0.5f * u * (1.0f - t * t) * 0.7978845608f * (1.0f + 3 * 0.044715f * u * u);
    }
    case Activation::gelu_erf:
      return 0.5f * (1.0f + std::erf(u * 0.7071067812f)) + u * 0.3989422804f * std::exp(-0.5f * u * u);
    case Activation::relu: return u > 0 ? 1.0f : 0.0f;
    case Activation::silu: {
      const float s = 1.0f / (1.0f + std::exp(-u));
      return s * (1.0f + u * (1.0f - s));
    }
    case Activation::tanh: {
      const float t = std::tanh(u);
      return 1.0f - t * t;
    }
    case Activation::sigmoid: {
      const float s = 1.0f / (1.0f + std::exp(-u));
      return s * (1.0f - s);
    }
  }
  return 1;
}

}  // namespace brisk
