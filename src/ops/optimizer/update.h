// update: the elementwise kernels of optimizers over flat parameter memory.
//
//   cpu::adamw_update({.parameters = p, .gradient = g, .m = m, .v = v, .count = count, .rate = 1e-3f});
#pragma once

#include <cstdint>

#include "ops/optimizer/step_numbers.h"
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
// In double across blocks, in an order fixed by count alone.
double squared_norm(const float* values, int64_t count);
void convert_to_bf16(const float* values, bf16_t* out, int64_t count);
// Of gradients that are summed in parts: sum += values; values = 0.
void add_floats(const float* values, float* sum, int64_t count);
void clear_floats(float* values, int64_t count);
}  // namespace cpu

// A part of the flat arrays whose parameters decay alike.
struct AdamWRun {
  int64_t begin = 0, count = 0;     // multiples of 16
  int64_t second_moment_begin = 0;  // its place in v
  float decay = 0;
  bool has_master = true;     // false: only the bf16 copy exists, updated with stochastic rounding
  int64_t master_begin = -1;  // its place in `parameters`; -1: begin
};

// AdamW over all runs at once. Rate, corrections and clipping factor are those of `step`.
struct AdamWRuns {
  float* parameters = nullptr;  // the flat arrays
  const float* gradient = nullptr;
  float* m = nullptr;
  float* v = nullptr;
  bf16_t* copy = nullptr;          // or none ...
  f16_t* half_copy = nullptr;      // ... or this one
  const AdamWRun* runs = nullptr;  // [run_count] in device memory, in the order of begin
  int64_t run_count = 0;
  int64_t elements = 0;  // of all runs together
  float beta1 = 0.9f, beta2 = 0.999f, epsilon = 1e-8f;
  const StepNumbers* step = nullptr;  // in device memory
};

namespace cuda {
void adamw_update(const AdamWRuns& op);
// Into device memory; the same bits on every run.
void squared_norm(const float* values, int64_t count, double* result);
void convert_to_bf16(const float* values, bf16_t* out, int64_t count);
void convert_to_f16(const float* values, f16_t* out, int64_t count);
// StepNumbers::add_loss, decide and set_update in device memory; set_pass sets the two numbers of a pass. The host's
// are written in their turn, without a copy over the bus.
void add_loss_sums(const float* sums, bool first, StepNumbers* step);
void decide_step(StepNumbers* step);
void set_pass(float loss_scale, uint64_t step_key, StepNumbers* step);
void set_update(const StepNumbers& settings, StepNumbers* step);
// All of it, into staging memory of the host.
void publish_step(const StepNumbers* step, StepNumbers* staging);
}  // namespace cuda

}  // namespace brisk
