// Products on a GPU of every small shape, alignment and order.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <vector>

#include "ops/gemm/cuda/gemm_cublaslt_cuda.h"
#include "support/on_gpu.h"

namespace brisk {
namespace {

using testing::GpuMatrix;
using testing::OnGpu;
using testing::Side;

using CudaProduct = OnGpu;

TEST(CudaProductAlignment, IsThatOfThePointerUpTo256) {
  const auto of = [](uintptr_t address, int64_t distance = 0) {
    return cuda::alignment_of_all(reinterpret_cast<const void*>(address), distance);
  };
  EXPECT_EQ(of(0), 256u);
  EXPECT_EQ(of(0x7f0000001002), 2u);
  EXPECT_EQ(of(0x7f0000001010), 16u);
  for (int bit = 8; bit < 47; ++bit) EXPECT_EQ(of(uintptr_t{1} << bit), 256u) << bit;
  EXPECT_EQ(of(uintptr_t{1} << 33, 70), 2u);  // the second of a batch
}

struct ProductCase {
  int64_t m, n, k;
  DType type, c_type;
  bool a_transposed, b_transposed, adds;
  int64_t odd;  // elements by which everything is moved off its alignment
};

// Either way of multiplying against a plain sum.
void check_product(const ProductCase& p, bool plainly) {
  SCOPED_TRACE(fmt::format("[{}, {}] by [{}, {}], {} to {}, transposed {} {}, adds {}, odd {}", p.m, p.k, p.k, p.n,
                           dtype_name(p.type), dtype_name(p.c_type), p.a_transposed, p.b_transposed, p.adds, p.odd));
  GpuMatrix a(p.a_transposed ? p.k : p.m, (p.a_transposed ? p.m : p.k) + p.odd, p.type, 1);
  GpuMatrix b(p.b_transposed ? p.n : p.k, (p.b_transposed ? p.k : p.n) + p.odd, p.type, 2);
  GpuMatrix c(p.m, p.n + p.odd, p.c_type, 3);
  const auto part = [&](const GpuMatrix& matrix, Side side) {
    const Tensor all = matrix.at(side);
    return all.columns(p.odd, all.cols - p.odd);
  };
  for (int64_t i = 0; i < p.m; ++i) {
    for (int64_t j = 0; j < p.n; ++j) {
      double sum = p.adds ? c.host().get(i, j + p.odd) : 0;
      for (int64_t q = 0; q < p.k; ++q) {
        const double left = p.a_transposed ? a.host().get(q, i + p.odd) : a.host().get(i, q + p.odd);
        const double right = p.b_transposed ? b.host().get(j, q + p.odd) : b.host().get(q, j + p.odd);
        sum += left * right;
      }
      c.host().set(i, j + p.odd, static_cast<float>(sum));
    }
  }
  cuda::GemmProblem product{.m = p.m,
                            .n = p.n,
                            .k = p.k,
                            .a = operand(part(a, Side::gpu), p.a_transposed),
                            .b = operand(part(b, Side::gpu), p.b_transposed)};
  product.c = part(c, Side::gpu);
  if (p.adds) product.addend = product.c;
  if (plainly) {
    cuda::multiply_plainly(product);
  } else {
    EXPECT_TRUE(cuda::multiply(product));
  }
  c.expect_close(p.c_type == DType::f32 ? 1e-4 : 8e-3, "c");
}

TEST_F(CudaProduct, NeverFails) {
  const std::vector<std::array<int64_t, 3>> shapes = {{1, 1, 1},    {1, 64, 7},    {130, 1, 64}, {7, 7, 130},
                                                      {64, 64, 64}, {33, 96, 128}, {128, 33, 1}, {130, 48, 17}};
  for (const auto& [m, n, k] : shapes) {
    for (const auto& [type, c_type] : {std::pair{DType::f32, DType::f32},
                                       {DType::bf16, DType::bf16},
                                       {DType::bf16, DType::f32},
                                       {DType::f16, DType::f16},
                                       {DType::f16, DType::f32}}) {
      for (const int64_t odd : {0, 1, 4}) {
        check_product({m, n, k, type, c_type, false, true, false, odd}, false);
        check_product({m, n, k, type, c_type, false, false, false, odd}, false);
        check_product({m, n, k, type, c_type, true, false, true, odd}, false);
        check_product({m, n, k, type, c_type, true, true, true, odd}, true);
        check_product({m, n, k, type, c_type, false, true, false, odd}, true);
      }
    }
  }
}

// A weight's gradient: small, of many rows, so that the depth may be divided.
TEST_F(CudaProduct, DividesADeepOne) {
  for (const bool adds : {false, true}) {
    check_product({96, 64, 4096, DType::bf16, DType::f32, true, false, adds, 0}, false);
    check_product({70, 130, 5000, DType::f32, DType::f32, true, false, adds, 0}, false);
  }
}

}  // namespace
}  // namespace brisk
