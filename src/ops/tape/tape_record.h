// What the ops share in the files that record them on the tape (*_tape.cpp).
#pragma once

#include <span>
#include <string>

#include "ops/backend.h"
#include "ops/dropout.h"
#include "ops/rows/rows_copy.h"
#include "tensor/program.h"
#include "tensor/tape.h"

namespace brisk {

// An op whose backward can only overwrite the gradients of its inputs.
class OverwritingOp : public Op {
 public:
  bool overwrites_gradients() const final { return true; }
  void add_gradient(const OpRun& run, const Tensor& contribution, const Tensor& sum) const final {
    BRISK_RUN_OP(run, copy_rows, contribution, sum, true);
  }
};

inline double rows_of_a_sequence(const Tape& tape, Value value, std::span<const RowMeans> sets) {
  return sets[static_cast<size_t>(tape.spec(value).row_set)].rows;
}

// Of x [rows, inputs] times a weight's transpose [outputs, inputs], parameter 0: a product forward, and one more for each
// of the two gradients.
inline OpCost product_cost(double rows, int64_t inputs, int64_t outputs) {
  const double product = 2 * rows * static_cast<double>(inputs) * static_cast<double>(outputs);
  return {.forward = product, .input_gradient = product, .parameter_gradient = product};
}

// Dropout is drawn while training alone; evaluation records none.
struct DropoutSite {
  double probability = 0;
  uint64_t site = 0;

  DropoutSite(Tape& tape, double p) : probability(tape.training() ? p : 0), site(p > 0 ? tape.next_site() : 0) {}
  Dropout at(const DeviceBatch& batch) const {
    if (probability <= 0) return {};
    const auto p = static_cast<float>(probability);
    if (batch.step_key != nullptr) return {p, site, batch.step_key};
    return {p, random_key({batch.seed, batch.step, site})};
  }
};

// "layers.3.attention_norm" of "layers.3.attention_norm.weight": the name of an op.
inline std::string label_of(const Parameter* parameter) {
  const std::string& name = parameter->spec.name;
  return name.substr(0, name.find_last_of('.'));
}

inline Value make_value(Tape& tape, Value like, int64_t cols, DType type, bool gradient) {
  ValueSpec spec = tape.spec(like);
  spec.cols = cols;
  spec.type = type;
  spec.gradient = gradient;
  spec.read_back = false;
  return tape.add_value(spec);
}

}  // namespace brisk
