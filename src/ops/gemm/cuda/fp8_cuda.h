// Conversion of matrices to fp8 for products on the GPU, each divided by its own scale, so that its largest number maps
// to the format's largest. Free of CUDA's headers.
//
//   cuda::to_fp8({.from = x, .type = DType::e4m3, .rows = bytes, .scale = scale, .partial = partial});
//   const GemmOperand a{bytes, DType::e4m3, x.cols, false, scale};
//
// cuBLASLt multiplies eight bits only where both operands lie along the depth, so a gradient's product wants the
// transposes of what forward multiplies; these are written in the same pass, and kept for backward
// (LinearForward::fp8_operands).
//
// The scale comes from the numbers themselves (current scaling), found by a sweep over them just before. The alternative,
// delayed scaling, uses the maximum of the last steps and saves that sweep, a third of what fp8 costs besides its
// products. Its price: a history for every operand, which a checkpoint must hold for a bit-exact resume, and numbers
// clipped whenever they grow. Current scaling has no state at all.
#pragma once

#include "base/rounding.h"
#include "tensor/tensor.h"

namespace brisk::cuda {

constexpr int64_t kFp8Multiple = 16;  // of the depth and the columns of a product
constexpr int64_t kMostFp8Partials = 512;
constexpr int64_t kFp8TileRows = 64;

struct ToFp8 {
  Tensor from;               // [rows, cols] f32 or bf16
  DType type = DType::e4m3;  // or e5m2
  void* rows = nullptr;      // [rows, cols] out, or none
  void* columns = nullptr;   // [cols, rows rounded up to kFp8Multiple] out: the transpose, zeros behind it; or none
  float* scale = nullptr;    // [1] out: the bytes times this are the numbers
  float* partial = nullptr;  // [kMostFp8Partials] scratch
  // The sums of the columns, of the numbers as they were: a bias's gradient, on the way.
  float* sums = nullptr;  // [cols] out, or none
  bool sums_add = false;
  float* sums_partial = nullptr;  // [rows over kFp8TileRows, cols] scratch, where sums are wanted
};
void to_fp8(const ToFp8& op);
void to_fp8(const ToFp8& first, const ToFp8& second);  // at once: small matrices cost little more than a launch

// Whether to_fp8() can read it and products can multiply it.
bool fits_fp8(const Tensor& t);

}  // namespace brisk::cuda
