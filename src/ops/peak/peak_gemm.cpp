#include <algorithm>
#include <chrono>

#include "ops/peak/peak.h"
#include "tensor/device.h"

namespace brisk {

double measured_product_gflops(Arithmetic arithmetic) {
  constexpr int64_t kSide = 1024;
  constexpr int kTrials = 7;
  const DType type = arithmetic == Arithmetic::bf16 ? DType::bf16 : DType::f32;
  const Buffer a(cpu_device(), kSide * kSide * size_of(type)), b(cpu_device(), kSide * kSide * size_of(type)),
      c(cpu_device(), kSide * kSide * size_of(DType::f32));
  GemmEpilogue epilogue;
  epilogue.c = matrix(c.data(), DType::f32, kSide, kSide);
  const GemmOperand left = operand(matrix(a.data(), type, kSide, kSide));
  const GemmOperand right = operand(matrix(b.data(), type, kSide, kSide), true);
  double best = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    const auto start = std::chrono::steady_clock::now();
    cpu::gemm(kSide, kSide, kSide, left, right, epilogue, arithmetic);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    best = std::max(best, 2e-9 * kSide * kSide * kSide / seconds);
  }
  return best;
}

#if !BRISK_HAVE_CUDA
double gpu_product_gflops(Device&, Arithmetic) { return 0; }
double gpu_copy_gb_per_second(Device&) { return 0; }
double gpu_launch_seconds(Device&) { return 0; }
#endif

}  // namespace brisk
