// update: what an optimizer does to flat parameter memory, one pass each.
//
//   cpu::adamw_update({.parameters = p, .gradient = g, .m = m, .v = v, .count = count, .rate = 1e-3f});
#pragma once

#include <cstdint>

#include "tensor/dtype.h"

namespace brisk {

// Decoupled weight decay (AdamW) on `count` consecutive parameters:
//   g = gradient_scale * gradient;  m += (1 - beta1)(g - m);  v += (1 - beta2)(g g - v)
//   p -= rate (decay p + (m / correction1) / (sqrt(v / correction2) + epsilon))
struct AdamWUpdate {
  float* parameters = nullptr;
  const float* gradient = nullptr;
  float* m = nullptr;
  float* v = nullptr;
  bf16_t* copy = nullptr;  // the bf16 compute copy, rewritten in the same pass; or none
  int64_t count = 0;
  float rate = 0, beta1 = 0.9f, beta2 = 0.999f, epsilon = 1e-8f, decay = 0;
  float correction1 = 1, correction2 = 1;  // 1 - beta^step
  float gradient_scale = 1;                // the clipping factor
};

namespace ref {
void adamw_update(const AdamWUpdate& op);
double squared_norm(const float* values, int64_t count);
void convert_to_bf16(const float* values, bf16_t* out, int64_t count);
}  // namespace ref
namespace cpu {
void adamw_update(const AdamWUpdate& op);
// In double across blocks, in an order fixed by count and threads.
double squared_norm(const float* values, int64_t count);
void convert_to_bf16(const float* values, bf16_t* out, int64_t count);
}  // namespace cpu

}  // namespace brisk
