#include "doctor/measure/update_cost.h"

#include <algorithm>
#include <vector>

namespace brisk {

int64_t update_bytes(int64_t trained_parameters) {
  constexpr int64_t kBytesOfParameter = 28;
  return kBytesOfParameter * trained_parameters;
}

// Muon orthogonalises each hidden matrix by five polynomials of it: two products with its sides, one of its Gram matrix.
double update_flop(const ParameterStore& store, const TrainingOptions& training) {
  if (training.optimizer != "muon" || training.lora_rank > 0) return 0;
  constexpr double kPolynomials = 5;
  double flop = 0;
  for (const auto& parameter : store.all()) {
    const ParameterSpec& spec = parameter->spec;
    if (!spec.hidden || !spec.trained) continue;
    const std::vector<int64_t> parts = spec.parts.empty() ? std::vector{spec.rows} : spec.parts;
    for (const int64_t rows : parts) {
      const auto n = static_cast<double>(std::min(rows, spec.cols));
      flop += kPolynomials * 2 * (2 * n * static_cast<double>(rows * spec.cols) + n * n * n);
    }
  }
  return flop;
}

}  // namespace brisk
