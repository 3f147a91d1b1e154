// One element of a tensor of any type as a float, for reference implementations and rarely run code.
#pragma once

#include "tensor/tensor.h"

namespace brisk {

inline float element(const Tensor& t, int64_t row, int64_t col) {
  const int64_t at = row * t.stride + col;
  if (t.type == DType::f16) return to_float(t.f16()[at]);
  return t.type == DType::bf16 ? to_float(t.bf16()[at]) : t.f32()[at];
}

inline void set_element(const Tensor& t, int64_t row, int64_t col, double value) {
  const int64_t at = row * t.stride + col;
  if (t.type == DType::f16) {
    t.f16()[at] = to_f16(static_cast<float>(value));
  } else if (t.type == DType::bf16) {
    t.bf16()[at] = to_bf16(static_cast<float>(value));
  } else {
    t.f32()[at] = static_cast<float>(value);
  }
}

// A factor of a product: rounded to the arithmetic (the weight's type), whatever type it is kept in.
inline double rounded_element(const Tensor& t, int64_t row, int64_t col, DType arithmetic) {
  const float value = element(t, row, col);
  if (arithmetic == DType::f16) return to_float(to_f16(value));
  return arithmetic == DType::bf16 ? to_float(to_bf16(value)) : value;
}

// value, or what is there plus value.
inline void put_element(const Tensor& t, int64_t row, int64_t col, double value, bool adds) {
  set_element(t, row, col, adds ? element(t, row, col) + value : value);
}

}  // namespace brisk
