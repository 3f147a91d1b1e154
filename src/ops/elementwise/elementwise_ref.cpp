#include "ops/element.h"
#include "ops/elementwise/elementwise.h"

namespace brisk::ref {

namespace {

double product_at(const Tensor& a, const Tensor& b, int64_t r, int64_t c) {
  return double{element(a, r, c)} * (b ? element(b, r, c) : 1.0f);
}

}  // namespace

void combine(const Combine& op) {
  const int64_t width = op.y.cols / op.b.cols;
  for (int64_t r = 0; r < op.y.rows; ++r) {
    for (int64_t c = 0; c < op.y.cols; ++c) {
      const double b = element(op.b, op.b.rows == 1 ? 0 : r, c / width);
      double y = b;
      if (op.a) y = op.kind == Combine::Kind::add ? element(op.a, r, c) + b : element(op.a, r, c) * b;
      put_element(op.y, r, c, y, op.y_adds);
    }
  }
}

void sum_columns(const SumColumns& op) {
  const int64_t width = op.a.cols / op.y.cols;
  for (int64_t r = 0; r < op.y.rows; ++r) {
    for (int64_t g = 0; g < op.y.cols; ++g) {
      double sum = 0;
      for (int64_t c = g * width; c < (g + 1) * width; ++c) sum += product_at(op.a, op.b, r, c);
      put_element(op.y, r, g, sum, op.y_adds);
    }
  }
}

void sum_rows(const SumRows& op) {
  for (int64_t c = 0; c < op.y.cols; ++c) {
    double sum = 0;
    for (int64_t r = 0; r < op.a.rows; ++r) sum += product_at(op.a, op.b, r, c);
    put_element(op.y, 0, c, sum, op.y_adds);
  }
}

}  // namespace brisk::ref
