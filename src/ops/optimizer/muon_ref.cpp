#include <cmath>
#include <vector>

#include "ops/optimizer/muon_kernels.h"

namespace brisk::ref {

double muon_momentum_range(const MuonDirection& op, int64_t begin, int64_t end) {
  double sum = 0;
  for (int64_t i = begin; i < end; ++i) {
    const float g = op.gradient_scale * op.matrix->gradient[i];
    float& m = op.matrix->momentum[i];
    m += (1 - op.momentum) * (g - m);
    const float x = g + op.momentum * (m - g);
    sum += double{x} * x;
  }
  return sum;
}

void muon_direction_range(const MuonDirection& op, float scale, float* x, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) {
    const float g = op.gradient_scale * op.matrix->gradient[i];
    x[i] = scale * (g + op.momentum * (op.matrix->momentum[i] - g));
  }
}

void muon_polynomial_rows(const MuonPolynomial& op, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) {
    for (int64_t j = 0; j < op.n; ++j) {
      float& value = op.square[i * op.n + j];
      value = (i == j ? kMuonA : 0.0f) + kMuonB * op.gram[i * op.n + j] + kMuonC * value;
    }
  }
}

void muon_apply_range(const MuonMatrix& matrix, const float* x, float keep, float step, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) {
    matrix.parameters[i] = keep * matrix.parameters[i] - step * x[i];
    if (matrix.copy != nullptr) matrix.copy[i] = to_bf16(matrix.parameters[i]);
  }
}

namespace {

using Values = std::vector<float>;

// [m, k] times [k, n].
Values product(const Values& a, const Values& b, int64_t m, int64_t n, int64_t k) {
  Values c(static_cast<size_t>(m * n));
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (int64_t p = 0; p < k; ++p) {
        sum += double{a[static_cast<size_t>(i * k + p)]} * b[static_cast<size_t>(p * n + j)];
      }
      c[static_cast<size_t>(i * n + j)] = static_cast<float>(sum);
    }
  }
  return c;
}

Values transposed(const Values& a, int64_t rows, int64_t cols) {
  Values t(a.size());
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < cols; ++j) t[static_cast<size_t>(j * rows + i)] = a[static_cast<size_t>(i * cols + j)];
  }
  return t;
}

}  // namespace

void muon_update(const MuonUpdate& op) {
  for (const MuonMatrix& matrix : op.matrices) {
    const int64_t R = matrix.rows, C = matrix.cols;
    const MuonDirection direction{&matrix, op.momentum, op.gradient_scale};
    const double norm = std::sqrt(muon_momentum_range(direction, 0, R * C));
    Values x(static_cast<size_t>(R * C));
    if (norm > 0) muon_direction_range(direction, static_cast<float>(1 / norm), x.data(), 0, R * C);
    for (int round = 0; round < kMuonRounds; ++round) {
      const Values gram = product(x, transposed(x, R, C), R, R, C);
      Values square = product(gram, gram, R, R, R);
      muon_polynomial_rows({gram.data(), square.data(), R}, 0, R);
      x = product(square, x, R, C, R);
    }
    const double shape = std::sqrt(std::max(1.0, static_cast<double>(R) / static_cast<double>(C)));
    muon_apply_range(matrix, x.data(), 1 - op.rate * op.decay, static_cast<float>(op.rate * shape), 0, R * C);
  }
}

}  // namespace brisk::ref
