#include <cmath>

#include "ops/optimizer/update.h"

namespace brisk::ref {

void adamw_update(const AdamWUpdate& op) {
  for (int64_t i = 0; i < op.count; ++i) {
    const float g = op.gradient_scale * op.gradient[i];
    op.m[i] += (1 - op.beta1) * (g - op.m[i]);
    op.v[i] += (1 - op.beta2) * (g * g - op.v[i]);
    const float step = (op.m[i] / op.correction1) / (std::sqrt(op.v[i] / op.correction2) + op.epsilon);
    op.parameters[i] -= op.rate * (op.decay * op.parameters[i] + step);
    if (op.copy != nullptr) op.copy[i] = to_bf16(op.parameters[i]);
  }
}

double squared_norm(const float* values, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += double{values[i]} * values[i];
  return sum;
}

void convert_to_bf16(const float* values, bf16_t* out, int64_t count) {
  for (int64_t i = 0; i < count; ++i) out[i] = to_bf16(values[i]);
}

}  // namespace brisk::ref
