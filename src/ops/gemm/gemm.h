// gemm: C = A B with an epilogue, the one matrix product under linear, linear_cross_entropy and their gradients.
//
//   cpu::gemm(n, outputs, inputs, operand(x), operand(w, true), {.c = y, .bias = b}, Arithmetic::f32);
//   cpu::gemm(outputs, inputs, n, operand(dy, true), operand(x), {.c = dw, .adds = true}, Arithmetic::f32);
//
// A is [M, Kd], B is [Kd, Nc]; each is a view with any of the two orders (`transposed`: element (i, j) is data[j *
// stride + i]). Both are packed into panels as the product goes: weights change every step, and with thousands of rows
// per weight packing B took 0.5-2 % of a product in fp32 and 1-4 % with AMX, so no packed copy of a weight is kept.
// (With 200 rows it takes 6-11 % in fp32, with 512 rows of a vocabulary's logits 3 %.) A sum runs over the depth in one
// order: the bits are the same for any number of threads.
#pragma once

#include "base/threads.h"
#include "ops/activation/activation.h"
#include "ops/dropout.h"
#include "tensor/rows.h"
#include "tensor/tensor.h"

namespace brisk {

struct GemmOperand {
  const void* data = nullptr;
  DType type = DType::f32;
  int64_t stride = 0;
  bool transposed = false;
  const float* scale = nullptr;  // in device memory, of e4m3 and e5m2: the bytes times this are the numbers
};

inline GemmOperand operand(const Tensor& t, bool transposed = false) { return {t.data, t.type, t.stride, transposed}; }

// c = residual + dropout(activation(acc + bias)), or c += acc with `adds`; `before` gets acc + bias.
// Types of c, before, residual: f32 or bf16 each.
struct GemmEpilogue {
  Tensor c = {};
  bool adds = false;
  const float* bias = nullptr;      // [Nc]
  const void* bias_copy = nullptr;  // [Nc] the same in the arithmetic's type, or none; the CPU has no use for it
  Activation activation = Activation::none;
  Tensor before = {};
  Dropout dropout = {};
  RowSet rows = {};  // of C's rows, for dropout
  Tensor residual = {};
};

// On a GPU alone: tf32, of f32 operands, and f16.
enum class Arithmetic : uint8_t { f32, bf16, tf32, f16 };

namespace cpu {
// Uses the whole ThreadPool. Which implementation runs is the active instruction set's best;
// BRISK_GEMM=own|onednn|blas|reference forces one.
void gemm(int64_t m, int64_t n, int64_t k, const GemmOperand& a, const GemmOperand& b, const GemmEpilogue& epilogue,
          Arithmetic arithmetic);

// The same bits, computed by the calling thread alone: threads of a ThreadPool may each multiply matrices of their own. Only
// where can_gemm_alone(): the libraries' products and the reference share their work with the ThreadPool.
void gemm_alone(int64_t m, int64_t n, int64_t k, const GemmOperand& a, const GemmOperand& b,
                const GemmEpilogue& epilogue, Arithmetic arithmetic);
bool can_gemm_alone();
}  // namespace cpu
namespace cuda {
// By cuBLASLt; what its epilogues cannot do is done by a pass afterwards.
void gemm(int64_t m, int64_t n, int64_t k, const GemmOperand& a, const GemmOperand& b, const GemmEpilogue& epilogue,
          Arithmetic arithmetic);
}  // namespace cuda

}  // namespace brisk
