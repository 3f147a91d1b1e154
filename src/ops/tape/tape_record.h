// What the tape's view of the ops (tape_*.cpp) shares.
#pragma once

#include "ops/dropout.h"
#include "tensor/program.h"
#include "tensor/tape.h"

namespace brisk {

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

inline Value make_value(Tape& tape, Value like, int64_t cols, DType type, bool gradient) {
  ValueSpec spec = tape.spec(like);
  spec.cols = cols;
  spec.type = type;
  spec.gradient = gradient;
  spec.kept = false;
  return tape.add_value(spec);
}

}  // namespace brisk
