// A matrix product on the GPU by cuBLASLt, with the epilogues it offers. Its fastest algorithm is found by timing, once
// per shape.
//
//   cuda::GemmProblem product{.m = N, .n = O, .k = I, .a = operand(x), .b = operand(w, true), .c = y, .bias = bias};
//   if (!cuda::multiply(product)) ...         // no algorithm supports this epilogue: use another kernel for it
//
// Free of CUDA's headers.
#pragma once

#include <functional>
#include <string>

#include "ops/gemm/gemm.h"

namespace brisk::cuda {

// c = activation(factor a b + addend_factor addend + bias), all matrices by rows.
struct GemmProblem {
  int64_t m = 0, n = 0, k = 0;
  // [m, k], [k, n] of one type, f32 or bf16; or each e4m3 or e5m2, not both e5m2, b transposed, k and n multiples of 16
  // (ops/gemm/cuda/fp8_cuda.h).
  GemmOperand a, b;
  Tensor c;  // [m, n] f32 or bf16
  float factor = 1;
  Tensor addend = {};  // [m, n] of c's type, or none; may be c itself
  float addend_factor = 1;
  const void* bias = nullptr;  // [n] of c's type (bf16 where operands have eight bits), or none
  bool gelu = false;           // the tanh form
  Tensor before = {};          // [m, n] with gelu: out, what it was applied to; or none
  bool gelu_gradient = false;  // c = (a b) gelu'(before) instead; before is read
  float* a_sums = nullptr;     // [m] out: the sums of a's rows over k (the bias's gradient, in a weight's), or none
  bool tf32 = false;           // of f32: tensor cores multiply it, rounded to ten bits of the mantissa
  int64_t batch = 1;           // so many products at once, each these many elements behind the other:
  int64_t a_distance = 0, b_distance = 0, c_distance = 0;
};

// Whether there is a library to multiply with; where not, `why` says what is missing. What it loads stays loaded.
bool has_gemm_library(std::string& why);

// Queues it; false, and nothing done, where no algorithm can do its epilogue. Without one it is always done, but for
// operands of eight bits that can_multiply() knows nothing for.
bool multiply(const GemmProblem& product);
bool can_multiply(const GemmProblem& product);
// By a kernel of our own, slow: factor, addend and batch, no epilogue. For what cuBLASLt has no algorithm for.
void multiply_plainly(const GemmProblem& product);
// Keeps the GPU busy, so that what is queued behind starts together.
void hold_gpu(int64_t cycles);

// Of a few runs: what `work` takes of the GPU. It is run once before.
float shortest_milliseconds(const std::function<void()>& work);

// What every matrix of a batch is aligned to whose first begins at `pointer`: bytes, a power of two, 256 at most.
uint32_t alignment_of_all(const void* pointer, int64_t distance_bytes);

// A product with its epilogue is not always faster than a plain one and a pass after it. Runs one or the other: which
// is measured once for each kind and shape, and remembered as algorithms are. Either may run several times then, so
// each must leave the same behind. `fused` says false, and has done nothing, where no algorithm can.
enum class Fusion : uint8_t { gelu = 1, gelu_gradient = 2, sums = 3 };
void run_faster(Fusion kind, const GemmProblem& shape, const std::function<bool()>& fused,
                const std::function<void()>& apart);

}  // namespace brisk::cuda
