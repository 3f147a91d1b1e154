#include "tensor/tape.h"

#include "base/error.h"

namespace brisk {

Value Tape::add_value(const ValueSpec& spec) {
  BRISK_CHECK(spec.cols > 0, "a value needs columns");
  BRISK_CHECK(spec.row_set >= 0 && spec.row_set < static_cast<int>(options_.rows.size()), "row set {}", spec.row_set);
  values_.push_back(spec);
  if (!training()) values_.back().gradient = false;
  return {static_cast<int>(values_.size()) - 1};
}

int64_t Tape::capacity_bytes(Value value) const {
  const ValueSpec& s = spec(value);
  const int64_t rows = s.fixed_rows > 0 ? s.fixed_rows : this->rows(s.row_set).rows;
  return rows * s.cols * size_of(s.type);
}

void Tape::record(Node node) {
  node.layer = layer_;
  node.input_in_backward.resize(node.inputs.size(), false);
  node.output_in_backward.resize(node.outputs.size(), false);
  for (const Value input : node.inputs) BRISK_CHECK(input.id >= 0 && input.id < static_cast<int>(values_.size()));
  for (const Value output : node.outputs) BRISK_CHECK(output.id >= 0 && output.id < static_cast<int>(values_.size()));
  nodes_.push_back(std::move(node));
}

}  // namespace brisk
