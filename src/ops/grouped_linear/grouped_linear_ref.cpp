#include "ops/element.h"
#include "ops/grouped_linear/grouped_linear.h"

namespace brisk::ref {

void grouped_linear_forward(const GroupedLinearForward& op) {
  const GroupedLinearShape& shape = op.shape;
  for (int64_t n = 0; n < op.y.rows; ++n) {
    for (int64_t r = 0; r < op.weight.rows; ++r) {
      double sum = op.bias ? element(op.bias, 0, r) : 0;
      for (int64_t i = 0; i < shape.inputs.inputs; ++i) {
        sum += double{element(op.weight, r, i)} * element(op.x, n, shape.inputs.column(shape.group_of(r), i));
      }
      set_element(op.y, n, r, sum);
    }
  }
}

void grouped_linear_backward(const GroupedLinearBackward& op) {
  const GroupedLinearShape& shape = op.shape;
  const int64_t rows = op.weight.rows, inputs = shape.inputs.inputs;
  if (op.dx) {
    for (int64_t n = 0; n < op.dx.rows; ++n) {
      for (int64_t g = 0; g < shape.groups; ++g) {
        for (int64_t i = 0; i < inputs; ++i) {
          double sum = 0;
          for (int64_t p = 0; p < shape.parts; ++p) {
            for (int64_t o = 0; o < shape.outputs; ++o) {
              const int64_t r = (p * shape.groups + g) * shape.outputs + o;
              sum += double{element(op.dy, n, r)} * element(op.weight, r, i);
            }
          }
          put_element(op.dx, n, shape.inputs.column(g, i), sum, op.dx_adds);
        }
      }
    }
  }
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t i = 0; i < inputs && op.dweight; ++i) {
      double sum = 0;
      for (int64_t n = 0; n < op.dy.rows; ++n) {
        sum += double{element(op.dy, n, r)} * element(op.x, n, shape.inputs.column(shape.group_of(r), i));
      }
      put_element(op.dweight, r, i, sum, op.dweight_adds);
    }
    if (!op.dbias) continue;
    double sum = 0;
    for (int64_t n = 0; n < op.dy.rows; ++n) sum += element(op.dy, n, r);
    put_element(op.dbias, 0, r, sum, op.dbias_adds);
  }
}

}  // namespace brisk::ref
