// What decides an optimizer step on the GPU: one thread, a few numbers.
#include "ops/cuda/cuda_stream.h"
#include "ops/optimizer/update.h"

namespace brisk::cuda {

namespace {

__global__ void add_sums_kernel(const float* sums, bool first, StepNumbers* step) { step->add_loss(sums, first); }

__global__ void decide_kernel(StepNumbers* step) { step->decide(); }

__global__ void set_pass_kernel(float loss_scale, uint64_t step_key, StepNumbers* step) {
  step->loss_scale = loss_scale;
  step->step_key = step_key;
}

__global__ void set_update_kernel(StepNumbers settings, StepNumbers* step) { step->set_update(settings); }

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
