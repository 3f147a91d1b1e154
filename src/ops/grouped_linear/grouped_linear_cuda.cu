// A thread has one output, one input or one weight. The products are few: memory is what these kernels wait for.
#include "base/rounding.h"
#include "ops/cuda/column_sums_cuda.cuh"
#include "ops/cuda/cuda_elements.cuh"
#include "ops/cuda/cuda_launch.cuh"
#include "ops/grouped_linear/grouped_linear.h"

namespace brisk::cuda {

namespace {

constexpr int kThreads = 256;

__global__ void grouped_linear_forward_kernel(GroupedLinearForward op) {
  const int64_t outputs = op.weight.rows, at = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (at >= op.y.rows * outputs) return;
  const int64_t n = at / outputs, r = at % outputs, g = op.shape.group_of(r);
  const float* weight = op.weight.f32() + r * op.weight.stride;
  float sum = op.bias ? op.bias.f32()[r] : 0.0f;
  for (int64_t i = 0; i < op.shape.inputs.inputs; ++i) {
    sum += weight[i] * load_any<1>(op.x, n * op.x.stride + op.shape.inputs.column(g, i)).v[0];
  }
  store_any(op.y, n * op.y.stride + r, Floats<1>{{sum}});
}

__global__ void grouped_linear_dx_kernel(GroupedLinearBackward op) {
  const int64_t inputs = op.shape.inputs.inputs, cols = op.shape.groups * inputs;
  const int64_t at = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (at >= op.dx.rows * cols) return;
  const int64_t n = at / cols, g = at % cols / inputs, i = at % inputs;
  float sum = 0;
  for (int64_t p = 0; p < op.shape.parts; ++p) {
    for (int64_t o = 0; o < op.shape.outputs; ++o) {
      const int64_t r = (p * op.shape.groups + g) * op.shape.outputs + o;
      sum += load_any<1>(op.dy, n * op.dy.stride + r).v[0] * op.weight.f32()[r * op.weight.stride + i];
    }
  }
  const int64_t to = n * op.dx.stride + op.shape.inputs.column(g, i);
  if (op.dx_adds) sum += load_any<1>(op.dx, to).v[0];
  store_any(op.dx, to, Floats<1>{{sum}});
}

// One part of the rows for each blockIdx.y: [P G O, I] of the weight, then [P G O] of the bias.
__global__ void grouped_linear_dweight_kernel(GroupedLinearBackward op, int64_t rows_of_part) {
  const int64_t outputs = op.weight.rows, inputs = op.weight.cols, weights = outputs * inputs;
  const int64_t at = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (at >= weights + outputs) return;
  const bool is_bias = at >= weights;
  const int64_t r = is_bias ? at - weights : at / inputs;
  const int64_t column = is_bias ? 0 : op.shape.inputs.column(op.shape.group_of(r), at % inputs);
  const int64_t begin = blockIdx.y * rows_of_part, end = min(op.dy.rows, begin + rows_of_part);
  float sum = 0;
  for (int64_t n = begin; n < end; ++n) {
    const float slope = load_any<1>(op.dy, n * op.dy.stride + r).v[0];
    sum += is_bias ? slope : slope * load_any<1>(op.x, n * op.x.stride + column).v[0];
  }
  op.scratch.f32()[blockIdx.y * op.scratch.stride + at] = sum;
}

}  // namespace

void grouped_linear_forward(const GroupedLinearForward& op) {
  launch(grouped_linear_forward_kernel,
         {.blocks = divide_up(op.y.rows * op.weight.rows, int64_t{kThreads}), .threads = kThreads}, op);
}

void grouped_linear_backward(const GroupedLinearBackward& op) {
  if (op.dx) {
    launch(grouped_linear_dx_kernel,
           {.blocks = divide_up(op.dx.rows * op.shape.groups * op.shape.inputs.inputs, int64_t{kThreads}),
            .threads = kThreads},
           op);
  }
  if (!op.dweight && !op.dbias) return;
  const int64_t outputs = op.weight.rows, weights = outputs * op.weight.cols;
  const int64_t rows = divide_up(op.dy.rows, kGroupedLinearParts), parts = rows == 0 ? 0 : divide_up(op.dy.rows, rows);
  launch(grouped_linear_dweight_kernel,
         {.blocks = divide_up(weights + outputs, int64_t{kThreads}), .blocks_y = parts, .threads = kThreads}, op, rows);
  if (op.dweight) {
    launch(add_parts_kernel, add_parts_shape(weights, 1),
           PartSums{op.scratch.f32(), parts, op.scratch.stride, weights, {op.dweight.f32()}, {op.dweight_adds}});
  }
  if (op.dbias) {
    launch(add_parts_kernel, add_parts_shape(outputs, 1),
           PartSums{op.scratch.f32() + weights, parts, op.scratch.stride, outputs, {op.dbias.f32()}, {op.dbias_adds}});
  }
}

}  // namespace brisk::cuda
