// A model, as the engine sees it: an ordinary function that records ops on a tape. Decoder and Encoder stand behind it;
// an architecture is one file, and its line in job/architectures.def.
//
//   std::unique_ptr<Model> model = make_model(config, store);   // declares the parameters
//   LossValues loss = model->loss(tape, {});                    // records one training or evaluation run
//   if (const CausalModel* causal = model->causal()) ...        // it can continue texts
#pragma once

#include <cstdint>

#include "ops/tape/tape_ops.h"
#include "tensor/tape.h"

namespace brisk {

class CausalModel;

class Model {
 public:
  virtual ~Model() = default;

  virtual LossValues loss(Tape& tape, const LossOptions& options) const = 0;

  // Of a classifier: how many classes there are, and their logits for the rows of set 1, [rows, C], read back.
  virtual int64_t classes() const { return 0; }
  virtual Value class_logits(Tape& /*tape*/) const { return {}; }

  // The model as one that continues texts; nullptr where it is none.
  virtual const CausalModel* causal() const { return nullptr; }
};

// A model that continues texts, one token at a time, with a key/value cache: what generation needs to know of it.
class CausalModel : public Model {
 public:
  const CausalModel* causal() const final { return this; }

  virtual Value next_token_logits(Tape& tape) const = 0;  // [S, V]
  virtual int64_t vocab_size() const = 0;
  virtual int64_t max_length() const = 0;  // the longest text it can read
  // One entry for each self_attention() that next_token_logits() records.
  struct CacheShape {
    int64_t layers = 0;
    int64_t width = 0;  // of a layer's keys, and of its values
  };
  virtual CacheShape cache_shape() const = 0;
  // Do a text's rows see the rows after them? Then what was computed of the text so far changes with every token: there is
  // no cache, and the whole text is computed for each.
  virtual bool sees_later_tokens() const { return false; }
};

}  // namespace brisk
