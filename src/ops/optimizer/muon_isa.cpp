#include "ops/cpu/simd.h"
#include "ops/optimizer/muon_kernels.h"

namespace brisk::BRISK_ISA {

double muon_momentum_range(const MuonDirection& op, int64_t begin, int64_t end) {
  const Vec gradient_scale = set1(op.gradient_scale), momentum = set1(op.momentum), take = set1(1 - op.momentum);
  const float* gradient = op.matrix->gradient + begin;
  float* m = op.matrix->momentum + begin;
  Vec sum[2] = {zero(), zero()};
  for_columns(end - begin, [&](int64_t i, int64_t lanes) BRISK_INLINE {
    const Vec g = load(gradient + i, lanes) * gradient_scale, old_m = load(m + i, lanes);
    const Vec new_m = fma(take, g - old_m, old_m);
    store(m + i, new_m, lanes);
    const Vec x = fma(momentum, new_m - g, g);
    sum[(i / kLanes) % 2] = fma(x, x, sum[(i / kLanes) % 2]);
  });
  return reduce_add(sum[0] + sum[1]);
}

void muon_direction_range(const MuonDirection& op, float scale, float* x, int64_t begin, int64_t end) {
  const Vec gradient_scale = set1(op.gradient_scale), momentum = set1(op.momentum), all = set1(scale);
  const float* gradient = op.matrix->gradient + begin;
  const float* m = op.matrix->momentum + begin;
  for_columns(end - begin, [&](int64_t i, int64_t lanes) BRISK_INLINE {
    const Vec g = load(gradient + i, lanes) * gradient_scale;
    store(x + begin + i, all * fma(momentum, load(m + i, lanes) - g, g), lanes);
  });
}

void muon_polynomial_rows(const MuonPolynomial& op, int64_t begin, int64_t end) {
  const Vec b = set1(kMuonB), c = set1(kMuonC);
  for (int64_t row = begin; row < end; ++row) {
    const float* gram = op.gram + row * op.n;
    float* square = op.square + row * op.n;
    for_columns(op.n, [&](int64_t i, int64_t lanes) BRISK_INLINE {
      store(square + i, fma(b, load(gram + i, lanes), c * load(square + i, lanes)), lanes);
    });
    square[row] += kMuonA;
  }
}

void muon_apply_range(const MuonMatrix& matrix, const float* x, float keep, float step, int64_t begin, int64_t end) {
  const Vec left = set1(keep), minus_step = set1(-step);
  float* p = matrix.parameters + begin;
  bf16_t* copy = matrix.copy == nullptr ? nullptr : matrix.copy + begin;
  for_columns(end - begin, [&](int64_t i, int64_t lanes) BRISK_INLINE {
    const Vec new_p = fma(minus_step, load(x + begin + i, lanes), left * load(p + i, lanes));
    store(p + i, new_p, lanes);
    if (copy != nullptr) store(copy + i, new_p, lanes);
  });
}

}  // namespace brisk::BRISK_ISA
