#include <algorithm>

#include "base/runtime.h"
#include "ops/gemm/gemm_few_rows.h"

namespace brisk::cpu {

void gemm_few_rows(const GemmKernels& kernels, int64_t m, int64_t n, int64_t k, const GemmOperand& a,
                   const GemmOperand& b, const GemmEpilogue& epilogue, Arithmetic arithmetic) {
  uint32_t row_keys[kFewRows] = {};
  for (int64_t r = 0; r < m && epilogue.dropout.active(); ++r) row_keys[r] = epilogue.dropout.row_key(epilogue.rows, r);
  const int64_t grain = m * n * k < kSmallProduct ? n : kFewRowsCols;
  thread_pool().for_range(n, grain, [&](int64_t begin, int64_t end, int) {
    alignas(64) float acc[kFewRows * kFewRowsCols];
    for (int64_t col = begin; col < end; col += kFewRowsCols) {
      const int64_t count = std::min(kFewRowsCols, end - col);
      BRISK_ACTIVE_ISA(multiply_few_rows)(m, k, a, b, arithmetic, col, count, acc);
      kernels.finish(acc, kFewRowsCols, 0, m, col, count, epilogue, row_keys);
    }
  });
}

}  // namespace brisk::cpu
