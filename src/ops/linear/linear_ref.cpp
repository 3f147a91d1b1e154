// The plain reference of linear: one loop per sum, in double, in the order of the formula.
#include "base/error.h"
#include "ops/element.h"
#include "ops/linear/linear.h"

namespace brisk::ref {

void linear_forward(const LinearForward& op) {
  const int64_t n = op.x.rows, inputs = op.x.cols, outputs = op.weight.rows;
  const DType arithmetic = op.weight.type;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t o = 0; o < outputs; ++o) {
      double sum = op.bias ? element(op.bias, 0, o) : 0;
      for (int64_t p = 0; p < inputs; ++p)
        sum += rounded_element(op.x, i, p, arithmetic) * rounded_element(op.weight, o, p, arithmetic);
      if (op.before) set_element(op.before, i, o, sum);
      double y = activate(op.activation, static_cast<float>(sum)) * op.dropout.factor(op.rows, i, o);
      if (op.residual) y += element(op.residual, i, o);
      set_element(op.y, i, o, y);
    }
  }
}

void linear_backward(const LinearBackward& op) {
  const int64_t n = op.x.rows, inputs = op.x.cols, outputs = op.weight.rows;
  const DType arithmetic = op.weight.type;
  const bool scaled = op.activation != Activation::none || op.dropout.active();
  BRISK_CHECK(scaled == static_cast<bool>(op.scratch) || n == 0,
              "linear_backward needs scratch with an activation or dropout");
  if (scaled) {
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t o = 0; o < outputs; ++o) {
        double du = element(op.dy, i, o) * op.dropout.factor(op.rows, i, o);
        if (op.activation != Activation::none) {
          du *= activate_slope(op.activation, element(op.before, i, o));
        }
        set_element(op.scratch, i, o, du);
      }
    }
  }
  const Tensor du = scaled ? op.scratch : op.dy;
  if (op.dbias) {
    for (int64_t o = 0; o < outputs; ++o) {
      double sum = op.dbias_adds ? element(op.dbias, 0, o) : 0;
      for (int64_t i = 0; i < n; ++i) sum += element(du, i, o);
      set_element(op.dbias, 0, o, sum);
    }
  }
  if (op.dweight) {
    for (int64_t o = 0; o < outputs; ++o) {
      for (int64_t p = 0; p < inputs; ++p) {
        double sum = op.dweight_adds ? element(op.dweight, o, p) : 0;
        for (int64_t i = 0; i < n; ++i)
          sum += rounded_element(du, i, o, arithmetic) * rounded_element(op.x, i, p, arithmetic);
        set_element(op.dweight, o, p, sum);
      }
    }
  }
  if (op.dx) {
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t p = 0; p < inputs; ++p) {
        double sum = op.dx_adds ? element(op.dx, i, p) : 0;
        for (int64_t o = 0; o < outputs; ++o)
          sum += rounded_element(du, i, o, arithmetic) * rounded_element(op.weight, o, p, arithmetic);
        set_element(op.dx, i, p, sum);
      }
    }
  }
}

}  // namespace brisk::ref
