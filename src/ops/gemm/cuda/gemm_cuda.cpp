#include <algorithm>

#include "base/error.h"
#include "base/rounding.h"
#include "ops/cuda/cuda_stream.h"
#include "ops/cuda/workspace_cuda.h"
#include "ops/gemm/cuda/gemm_cublaslt_cuda.h"
#include "ops/gemm/gemm.h"
#include "ops/linear/linear_elementwise_cuda.h"
#include "ops/rows/rows_copy.h"

namespace brisk::cuda {

namespace {

// What a product needs in addition to its arguments: factors, a bias and a result in types that cuBLASLt takes.
class GemmMemory {
 public:
  GemmMemory(const GemmProblem& p, DType type, const GemmEpilogue& e, bool passes)
      : a_bytes_(bytes_of(p.a, type, p.m * p.k)),
        b_bytes_(bytes_of(p.b, type, p.k * p.n)),
        bias_bytes_(e.bias != nullptr ? round_up(p.n * size_of(DType::bf16), kAlignment) : 0),
        u_bytes_(passes && !e.before ? round_up(p.m * p.n * size_of(type), kAlignment) : 0),
        carver_(a_bytes_ + b_bytes_ + bias_bytes_ + u_bytes_) {}

  void* a() { return carver_.take(a_bytes_); }
  void* b() { return carver_.take(b_bytes_); }
  void* bias() { return carver_.take(bias_bytes_); }
  void* u() { return carver_.take(u_bytes_); }

 private:
  static constexpr int64_t kAlignment = WorkspaceCarver::kAlignment;
  static int64_t bytes_of(const GemmOperand& operand, DType type, int64_t count) {
    return operand.type == type || operand.scale != nullptr ? 0 : round_up(count * size_of(type), kAlignment);
  }
  int64_t a_bytes_, b_bytes_, bias_bytes_, u_bytes_;
  WorkspaceCarver carver_;
};

void convert(GemmOperand& operand, DType type, int64_t rows, int64_t cols, void* memory) {
  if (operand.type == type || operand.scale != nullptr) return;
  if (operand.transposed) std::swap(rows, cols);
  const Tensor from{const_cast<void*>(operand.data), operand.type, rows, cols, operand.stride};
  const Tensor to = matrix(memory, type, rows, cols);
  copy_rows(from, to, false);
  operand = brisk::operand(to, operand.transposed);
}

}  // namespace

void gemm(int64_t m, int64_t n, int64_t k, const GemmOperand& a, const GemmOperand& b, const GemmEpilogue& e,
          Arithmetic arithmetic) {
  if (m == 0 || n == 0) return;
  const bool eight_bits = a.scale != nullptr;
  const DType type = arithmetic == Arithmetic::bf16  ? DType::bf16
                     : arithmetic == Arithmetic::f16 ? DType::f16
                                                     : DType::f32;
  GemmProblem product{.m = m, .n = n, .k = k, .a = a, .b = b};
  product.tf32 = arithmetic == Arithmetic::tf32;
  const bool fits = e.activation == Activation::none && !e.dropout.active() && !e.before &&
                    (!e.residual || e.residual.type == e.c.type);
  const bool fits_gelu = e.activation == Activation::gelu_tanh && !e.dropout.active() && !e.residual &&
                         (!e.before || (e.before.type == e.c.type && e.before.stride % 8 == 0));
  GemmMemory memory(product, type, e, !fits);
  convert(product.a, type, m, k, memory.a());
  convert(product.b, type, k, n, memory.b());
  void* const u_memory = memory.u();
  const void* small_bias = e.bias_copy;  // of 16 bits
  const auto bias_for = [&](DType result) -> const void* {
    if (e.bias == nullptr || (result == DType::f32 && !eight_bits)) return e.bias;
    if (small_bias == nullptr) {
      void* copy = memory.bias();
      copy_rows(matrix(const_cast<float*>(e.bias), DType::f32, 1, n),
                matrix(copy, eight_bits ? DType::bf16 : result, 1, n), false);
      small_bias = copy;
    }
    return small_bias;
  };
  const auto run_pass = [&] {
    const Tensor u = e.before ? e.before : matrix(u_memory, type, m, n);
    product.c = u;
    product.addend = {};
    product.gelu = false;
    product.before = {};
    product.bias = bias_for(u.type);
    const bool has_bias = product.bias != nullptr && multiply(product);
    if (!has_bias) {
      product.bias = nullptr;
      BRISK_CHECK(multiply(product), "cuBLASLt cannot multiply [{}, {}] by [{}, {}]", m, k, k, n);
    }
    finish_product(u, has_bias ? nullptr : e.bias, e);
  };
  const auto run_fused = [&] {
    product.c = e.c;
    product.bias = bias_for(e.c.type);
    product.gelu = true;
    product.before = e.before;
    return multiply(product);
  };
  if (fits_gelu) {
    GemmProblem shape{.m = m, .n = n, .k = k, .a = product.a, .b = product.b, .c = e.c, .before = e.before};
    shape.tf32 = product.tf32;
    return run_faster(Fusion::gelu, shape, run_fused, run_pass);
  }
  if (e.adds || fits) {
    product.c = e.c;
    product.addend = e.adds ? e.c : e.residual;
    product.bias = bias_for(e.c.type);
    if (multiply(product)) return;
    // The bias was too much for it.
    product.bias = nullptr;
    BRISK_CHECK(multiply(product), "cuBLASLt cannot multiply [{}, {}] by [{}, {}]", m, k, k, n);
    if (e.bias != nullptr) finish_product(e.c, e.bias, {.c = e.c});
    return;
  }
  run_pass();
}

}  // namespace brisk::cuda
