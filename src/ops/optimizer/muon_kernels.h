// The elementwise kernels of Muon over flat memory, elements [begin, end): per instruction set, and as plain loops.
#pragma once

#include "ops/cpu/by_isa.h"
#include "ops/optimizer/muon.h"

namespace brisk {

struct MuonDirection {
  const MuonMatrix* matrix = nullptr;
  float momentum = 0, gradient_scale = 1;
};

// S S becomes a I + b S + c S S, row by row.
struct MuonPolynomial {
  const float* gram = nullptr;  // S [n, n]
  float* square = nullptr;      // [n, n]: S S in, the polynomial out
  int64_t n = 0;
};

// M is updated; returns |X|^2 of these elements.
BRISK_VECTOR_ISAS(double muon_momentum_range(const MuonDirection& op, int64_t begin, int64_t end);)
// x = scale X.
BRISK_VECTOR_ISAS(void muon_direction_range(const MuonDirection& op, float scale, float* x, int64_t begin,
                                            int64_t end);)
BRISK_VECTOR_ISAS(void muon_polynomial_rows(const MuonPolynomial& op, int64_t begin, int64_t end);)
// P = keep P - step x.
BRISK_VECTOR_ISAS(void muon_apply_range(const MuonMatrix& matrix, const float* x, float keep, float step, int64_t begin,
                                        int64_t end);)

namespace ref {
double muon_momentum_range(const MuonDirection& op, int64_t begin, int64_t end);
void muon_direction_range(const MuonDirection& op, float scale, float* x, int64_t begin, int64_t end);
void muon_polynomial_rows(const MuonPolynomial& op, int64_t begin, int64_t end);
void muon_apply_range(const MuonMatrix& matrix, const float* x, float keep, float step, int64_t begin, int64_t end);
}  // namespace ref

}  // namespace brisk
