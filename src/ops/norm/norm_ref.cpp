#include <cmath>
#include <vector>

#include "ops/element.h"
#include "ops/norm/norm.h"

namespace brisk::ref {

void norm_forward(const NormForward& op) {
  const int64_t width = op.x.cols;
  for (int64_t r = 0; r < op.x.rows; ++r) {
    double mean = 0, square = 0;
    if (op.kind == NormKind::layer) {
      for (int64_t c = 0; c < width; ++c) mean += element(op.x, r, c);
      mean /= static_cast<double>(width);
    }
    for (int64_t c = 0; c < width; ++c) square += (element(op.x, r, c) - mean) * (element(op.x, r, c) - mean);
    const double rstd = 1 / std::sqrt(square / static_cast<double>(width) + double{op.epsilon});
    for (int64_t c = 0; c < width; ++c) {
      const double normal = (element(op.x, r, c) - mean) * rstd;
      const double y = normal * element(op.gain, 0, c) + (op.bias ? element(op.bias, 0, c) : 0.0f);
      set_element(op.y, r, c, y * op.dropout.factor(op.rows, r, c));
    }
    if (op.mean) set_element(op.mean, r, 0, mean);
    if (op.rstd) set_element(op.rstd, r, 0, rstd);
  }
}

// With n = (x - mean) rstd and g = gain dy:  dx = rstd (g - mean(g) - n mean(g n)); RMS norm has no mean(g).
void norm_backward(const NormBackward& op) {
  const int64_t width = op.x.cols;
  const bool centred = op.kind == NormKind::layer;
  std::vector<double> dgain(static_cast<size_t>(width)), dbias(static_cast<size_t>(width));
  for (int64_t r = 0; r < op.x.rows; ++r) {
    const double mean = centred ? element(op.mean, r, 0) : 0, rstd = element(op.rstd, r, 0);
    const auto normal = [&](int64_t c) { return (element(op.x, r, c) - mean) * rstd; };
    const auto gradient = [&](int64_t c) { return element(op.dy, r, c) * op.dropout.factor(op.rows, r, c); };
    double mean_g = 0, mean_gn = 0;
    for (int64_t c = 0; c < width; ++c) {
      const double dy = gradient(c), g = dy * element(op.gain, 0, c);
      mean_g += centred ? g / static_cast<double>(width) : 0;
      mean_gn += g * normal(c) / static_cast<double>(width);
      dgain[static_cast<size_t>(c)] += dy * normal(c);
      dbias[static_cast<size_t>(c)] += dy;
    }
    for (int64_t c = 0; op.dx && c < width; ++c) {
      const double g = gradient(c) * element(op.gain, 0, c);
      put_element(op.dx, r, c, rstd * (g - mean_g - normal(c) * mean_gn), op.dx_adds);
    }
  }
  for (int64_t c = 0; op.prepared.du && c < width; ++c) {
    double sum = 0;
    for (int64_t r = 0; r < op.x.rows; ++r) {
      const double du = element(op.dx, r, c) * op.prepared.dropout.factor(op.rows, r, c);
      set_element(op.prepared.du, r, c, du);
      sum += du;
    }
    if (op.prepared.dbias) put_element(op.prepared.dbias, 0, c, sum, op.prepared.dbias_adds);
  }
  for (int64_t c = 0; c < width; ++c) {
    if (op.dgain) put_element(op.dgain, 0, c, dgain[static_cast<size_t>(c)], op.dgain_adds);
    if (op.dbias) put_element(op.dbias, 0, c, dbias[static_cast<size_t>(c)], op.dbias_adds);
  }
}

}  // namespace brisk::ref
