#include "ops/element.h"
#include "ops/embedding/embedding.h"

namespace brisk::ref {

namespace {

void fill_zero(const Tensor& t) {
  for (int64_t r = 0; r < t.rows; ++r) {
    for (int64_t c = 0; c < t.cols; ++c) set_element(t, r, c, 0);
  }
}

}  // namespace

void embedding_forward(const EmbeddingForward& op) {
  for (int64_t r = 0; r < op.rows.rows; ++r) {
    for (int64_t c = 0; c < op.y.cols; ++c) {
      float sum = op.scale * element(op.table, op.tokens[r], c);
      if (op.positions) sum += element(op.positions, op.position_offset + op.rows.position[r], c);
      if (op.type_table) sum += element(op.type_table, op.types != nullptr ? op.types[r] : 0, c);
      set_element(op.y, r, c, sum * op.dropout.factor(op.rows, r, c));
    }
  }
}

void embedding_backward(const EmbeddingBackward& op) {
  if (op.dtable && !op.dtable_adds) fill_zero(op.dtable);
  if (op.dpositions && !op.dpositions_adds) fill_zero(op.dpositions);
  if (op.dtypes && !op.dtypes_adds) fill_zero(op.dtypes);
  for (int64_t r = 0; r < op.rows.rows; ++r) {
    for (int64_t c = 0; c < op.dy.cols; ++c) {
      const float gradient = element(op.dy, r, c) * op.dropout.factor(op.rows, r, c);
      if (op.dtable) put_element(op.dtable, op.tokens[r], c, op.scale * gradient, true);
      if (op.dpositions) put_element(op.dpositions, op.position_offset + op.rows.position[r], c, gradient, true);
      if (op.dtypes) put_element(op.dtypes, op.types != nullptr ? op.types[r] : 0, c, gradient, true);
    }
  }
}

}  // namespace brisk::ref
