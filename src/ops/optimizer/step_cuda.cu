// What decides an optimizer step on the GPU: one thread, a few numbers.
#include <cmath>

#include "ops/cuda/cuda_stream.h"
#include "ops/optimizer/update.h"

namespace brisk::cuda {

namespace {

__global__ void add_sums_kernel(const float* sums, bool first, StepNumbers* step) {
  step->loss_sum = (first ? 0 : step->loss_sum) + sums[0];
  step->correct = (first ? 0 : step->correct) + sums[1];
  step->targets = (first ? 0 : step->targets) + sums[2];
  step->weight_sum = (first ? 0 : step->weight_sum) + sums[3];
}

__global__ void decide_kernel(StepNumbers* step) {
  const double norm = sqrt(step->squared_norm) / step->scaling;
  const double loss = step->weight_sum > 0 ? step->loss_sum / step->weight_sum : step->loss_sum;
  const double clipping = step->max_norm > 0 && norm > step->max_norm ? step->max_norm / norm : 1.0;
  step->gradient_scale = static_cast<float>(clipping / step->scaling);
  const bool applies =
      isfinite(step->loss_sum) && isfinite(norm) && norm <= step->norm_limit && loss <= step->loss_limit;
  step->applied = applies ? 1.0f : 0.0f;
}

__global__ void set_pass_kernel(float loss_scale, uint64_t step_key, StepNumbers* step) {
  step->loss_scale = loss_scale;
  step->step_key = step_key;
}

__global__ void set_update_kernel(StepNumbers settings, StepNumbers* step) {
  step->rate = settings.rate;
  step->muon_rate = settings.muon_rate;
  step->correction1 = settings.correction1;
  step->correction2 = settings.correction2;
  step->scaling = settings.scaling;
  step->max_norm = settings.max_norm;
  step->norm_limit = settings.norm_limit;
  step->loss_limit = settings.loss_limit;
}

__global__ void publish_kernel(const StepNumbers* step, StepNumbers* staging) { *staging = *step; }

}  // namespace

void set_pass(float loss_scale, uint64_t step_key, StepNumbers* step) {
  set_pass_kernel<<<1, 1, 0, stream()>>>(loss_scale, step_key, step);
  BRISK_CUDA_LAUNCHED();
}

void set_update(const StepNumbers& settings, StepNumbers* step) {
  set_update_kernel<<<1, 1, 0, stream()>>>(settings, step);
  BRISK_CUDA_LAUNCHED();
}

void publish_step(const StepNumbers* step, StepNumbers* staging) {
  publish_kernel<<<1, 1, 0, stream()>>>(step, staging);
  BRISK_CUDA_LAUNCHED();
}

void add_loss_sums(const float* sums, bool first, StepNumbers* step) {
  add_sums_kernel<<<1, 1, 0, stream()>>>(sums, first, step);
  BRISK_CUDA_LAUNCHED();
}

void decide_step(StepNumbers* step) {
  decide_kernel<<<1, 1, 0, stream()>>>(step);
  BRISK_CUDA_LAUNCHED();
}

}  // namespace brisk::cuda
