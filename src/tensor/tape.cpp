#include "tensor/tape.h"

#include "base/error.h"

namespace brisk {

OpCost Op::cost(const Tape&, const Node&, std::span<const RowMeans>) const { return {}; }
GpuWorkspace Op::gpu_workspace(const Tape&, const Node&) const { return {}; }
int64_t Op::cpu_workspace(const Tape&, const Node&) const { return 0; }

void Op::add_gradient(const OpRun&, const Tensor&, const Tensor&) const {
  BRISK_CHECK(false, "{}: an op that overwrites gradients says how they are added", name());
}

bool Op::wants_prepared_gradient(const Tape&, const Node&) const { return false; }

void Op::describe_prepared_gradient(const OpRun&, PreparedGradient&) const {
  BRISK_CHECK(false, "{}: an op that wants a prepared gradient says which", name());
}

Value Tape::add_value(const ValueSpec& spec) {
  BRISK_CHECK(spec.cols > 0, "a value needs columns");
  BRISK_CHECK(spec.row_set >= 0 && spec.row_set < static_cast<int>(options_.rows.size()), "row set {}", spec.row_set);
  values_.push_back(spec);
  if (!training()) values_.back().gradient = false;
  return {static_cast<int>(values_.size()) - 1};
}

int64_t Tape::capacity_rows(Value value) const {
  const ValueSpec& s = spec(value);
  return s.fixed_rows > 0 ? s.fixed_rows : rows(s.row_set).rows;
}

int64_t Tape::capacity_bytes(Value value) const {
  return capacity_rows(value) * spec(value).cols * size_of(spec(value).type);
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
