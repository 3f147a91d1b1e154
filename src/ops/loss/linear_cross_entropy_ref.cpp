// The plain reference of linear_cross_entropy: row by row, all logits of a row at once, in double.
#include <algorithm>
#include <cmath>
#include <vector>

#include "base/error.h"
#include "ops/element.h"
#include "ops/loss/linear_cross_entropy.h"

namespace brisk::ref {

namespace {

// T^2 KL(p || softmax(logits / T)) of a row, and its gradient T (softmax(logits / T) - p).
double soft_part(const LinearCrossEntropy& op, int64_t row, const std::vector<double>& logits,
                 std::vector<double>& gradient) {
  const double T = op.temperature, largest = *std::max_element(logits.begin(), logits.end());
  const float* shares = op.soft_targets + row * op.weight.rows;
  double total = 0, divergence = 0;
  for (const double logit : logits) total += std::exp((logit - largest) / T);
  for (size_t v = 0; v < logits.size(); ++v) {
    const double log_share = (logits[v] - largest) / T - std::log(total), p = shares[v];
    if (p > 0) divergence += p * (std::log(p) - log_share);
    gradient[v] = T * (std::exp(log_share) - p);
  }
  return T * T * divergence;
}

}  // namespace

void linear_cross_entropy(const LinearCrossEntropy& op) {
  const int64_t n = op.x.rows, width = op.x.cols, vocabulary = op.weight.rows;
  const DType arithmetic = op.weight.type;
  BRISK_CHECK(op.soft_targets == nullptr || op.dx || op.dweight || op.dbias, "soft targets without gradient");
  const double soft = op.soft_targets != nullptr ? op.soft_weight : 0;
  std::vector<double> dsoft(static_cast<size_t>(vocabulary));
  const double smoothing = op.label_smoothing, everywhere = smoothing / static_cast<double>(vocabulary);
  std::vector<double> logits(static_cast<size_t>(vocabulary)), dx(static_cast<size_t>(width));
  std::vector<double> dweight(op.dweight ? static_cast<size_t>(vocabulary * width) : 0);
  std::vector<double> dbias(op.dbias ? static_cast<size_t>(vocabulary) : 0);
  double loss_sum = 0, correct = 0, valid = 0, weight_sum = 0;
  for (int64_t i = 0; i < n; ++i) {
    double largest = -INFINITY, mean = 0, total = 0;
    int64_t best = 0;
    for (int64_t v = 0; v < vocabulary; ++v) {
      double sum = op.bias ? element(op.bias, 0, v) : 0;
      for (int64_t d = 0; d < width; ++d)
        sum += rounded_element(op.x, i, d, arithmetic) * rounded_element(op.weight, v, d, arithmetic);
      logits[static_cast<size_t>(v)] = sum;
      mean += sum / static_cast<double>(vocabulary);
      if (sum > largest) {
        largest = sum;
        best = v;
      }
    }
    for (const double logit : logits) total += std::exp(logit - largest);
    const double log_sum_exp = largest + std::log(total);
    const int32_t target = op.targets[i];
    const double weight = op.weights != nullptr ? op.weights[i] : 1;
    double loss = 0;
    if (target >= 0) {
      const double plain = log_sum_exp - logits[static_cast<size_t>(target)];
      loss = (1 - smoothing) * plain + smoothing * (log_sum_exp - mean);
      if (op.soft_targets != nullptr) loss = (1 - soft) * loss + soft * soft_part(op, i, logits, dsoft);
      loss_sum += weight * loss;
      weight_sum += weight;
      correct += best == target;
      valid += 1;
    }
    op.loss.f32()[i * op.loss.stride] = static_cast<float>(loss);
    op.argmax.i32()[i * op.argmax.stride] = static_cast<int32_t>(best);

    std::fill(dx.begin(), dx.end(), 0.0);
    for (int64_t v = 0; v < vocabulary && (op.dx || op.dweight || op.dbias); ++v) {
      const double wanted = everywhere + (v == target ? 1 - smoothing : 0);
      const double dhard = std::exp(logits[static_cast<size_t>(v)] - log_sum_exp) - wanted;
      const double dlogit =
          target >= 0 ? op.scale * weight * ((1 - soft) * dhard + soft * dsoft[static_cast<size_t>(v)]) : 0;
      if (op.dbias) dbias[static_cast<size_t>(v)] += dlogit;
      for (int64_t d = 0; d < width; ++d) {
        dx[static_cast<size_t>(d)] += dlogit * rounded_element(op.weight, v, d, arithmetic);
        if (op.dweight) dweight[static_cast<size_t>(v * width + d)] += dlogit * rounded_element(op.x, i, d, arithmetic);
      }
    }
    for (int64_t d = 0; d < width && op.dx; ++d) set_element(op.dx, i, d, dx[static_cast<size_t>(d)]);
  }
  for (int64_t v = 0; v < vocabulary && op.dweight; ++v) {
    for (int64_t d = 0; d < width; ++d) {
      put_element(op.dweight, v, d, dweight[static_cast<size_t>(v * width + d)], op.dweight_adds);
    }
  }
  for (int64_t v = 0; v < vocabulary && op.dbias; ++v) {
    put_element(op.dbias, 0, v, dbias[static_cast<size_t>(v)], op.dbias_adds);
  }
  const double sums[4] = {loss_sum, correct, valid, weight_sum};
  for (int64_t s = 0; s < 4; ++s) op.sums.f32()[s] = static_cast<float>(sums[s]);
}

}  // namespace brisk::ref
