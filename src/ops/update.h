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

// What one optimizer step knows in device memory, so that nothing waits for the host between backward and the update:
//
//   copy_in(step, host_step);                                            // rate, corrections, limits; the rest 0
//   cuda::add_loss_sums(sums, step);                                     // after each micro-batch
//   cuda::finish_gradient(gradient, count, step);                        // norm, clipping factor, whether to update
//   cuda::adamw_update_runs({.runs = runs, .count = n, .blocks = blocks, .step = step});
//   copy_out(host_step, step);                                           // once, at the end
struct DeviceStep {
  // The host writes these before the step.
  float rate = 0;
  float correction1 = 1, correction2 = 1;  // 1 - beta^step
  float max_norm = 0;                      // clip to this norm; 0: never
  double norm_limit = 0, loss_limit = 0;   // a step above is not applied; infinity: no limit
  // The device fills these.
  double loss_sum = 0, correct = 0, targets = 0, weight_sum = 0;  // of the step's micro-batches
  double squared_norm = 0;                                        // of the gradient
  float gradient_scale = 1;                                       // the clipping factor
  int32_t applied = 0;  // 1 where loss and norm are finite and within the limits: the update changes something
};

// Consecutive parameters that decay alike, as AdamWUpdate. An array of them is built once and kept in device memory.
struct AdamWRun {
  float* parameters = nullptr;
  const float* gradient = nullptr;
  float* m = nullptr;
  float* v = nullptr;
  bf16_t* copy = nullptr;  // or none
  int64_t count = 0;
  int64_t first_block = 0;  // filled by number_adamw_blocks
  float decay = 0;
};

struct AdamWUpdateRuns {
  const AdamWRun* runs = nullptr;  // [count] in device memory
  int64_t count = 0;
  int64_t blocks = 0;  // what number_adamw_blocks answered
  float beta1 = 0.9f, beta2 = 0.999f, epsilon = 1e-8f;
  const DeviceStep* step = nullptr;  // in device memory
};

namespace cuda {
void adamw_update(const AdamWUpdate& op);
void convert_to_bf16(const float* values, bf16_t* out, int64_t count);

// *out (device memory) = the sum of squares, in two stages of fixed order.
void squared_norm(const float* values, int64_t count, double* out);

// Says in each run (in host memory, before it is copied to the device) which blocks of one launch are its own; answers
// how many there are in all.
int64_t number_adamw_blocks(AdamWRun* runs, int64_t count);
void adamw_update_runs(const AdamWUpdateRuns& op);

// step->loss_sum, correct, targets, weight_sum += the four sums of linear_cross_entropy.
void add_loss_sums(const float* sums, DeviceStep* step);
void finish_gradient(const float* gradient, int64_t count, DeviceStep* step);
}  // namespace cuda

}  // namespace brisk
