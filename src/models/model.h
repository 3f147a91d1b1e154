// A model, as the engine sees it: an ordinary function that records ops on a tape. Decoder and Encoder stand behind it;
// an architecture is one file here, and its line in models/registry.h.
//
//   std::unique_ptr<Model> model = make_model(config, store);   // declares the parameters
//   LossValues loss = model->loss(tape, {});                    // records one training or evaluation run
#pragma once

#include <cstdint>

#include "ops/tape/tape_ops.h"
#include "tensor/tape.h"

namespace brisk {

class Model {
 public:
  virtual ~Model() = default;

  virtual LossValues loss(Tape& tape, const LossOptions& options) const = 0;

  // Of a classifier: how many classes there are, and their logits for the rows of set 1, [rows, C], kept.
  virtual int64_t classes() const { return 0; }
  virtual Value class_logits(Tape& /*tape*/) const { return {}; }
};

}  // namespace brisk
