// The logits that a classifier gives to texts, packed and in their order.
//
//   ClassPredictor predictor(model, parameters, {4096, 256, 128}, layout, Backend::cpu);
//   predictor.run(*sequences, ledger, [&](const ClassPredictor::Row& row) { best = likeliest_class(row.logits); });
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "base/ledger.h"
#include "data/batch/sequences.h"
#include "infer/forward/batch_layout.h"
#include "infer/forward/forward_run.h"
#include "models/model.h"

namespace brisk {

class ClassPredictor {
 public:
  // `model` and `store` must outlive it, and `shared_with`, whose memory it then uses: the two must not be active
  // at the same time.
  ClassPredictor(const Model& model, const ParameterStore& store, const RowCapacity& capacity,
                 const BatchLayout& layout, Backend backend, GemmFormat products = GemmFormat::own,
                 const Program* shared_with = nullptr);

  struct Row {
    int64_t number;                 // of the sequence
    int32_t target;                 // its label; -1: none
    std::span<const float> logits;  // [C]
  };
  // Of the first `count` sequences, or of all. Returns the token rows that were computed.
  int64_t run(const Sequences& sequences, Ledger& ledger, const std::function<void(const Row&)>& each,
              int64_t count = std::numeric_limits<int64_t>::max());

  int64_t classes() const { return classes_; }

 private:
  int64_t classes_;
  size_t row_set_ = 0;  // whose rows are classified
  ForwardRun run_;
  std::vector<float> host_;  // logits of a micro-batch
};

int32_t likeliest_class(std::span<const float> logits);            // the first of several
double class_loss(std::span<const float> logits, int32_t target);  // -log softmax(logits)[target]
std::vector<double> class_probabilities(std::span<const float> logits);

}  // namespace brisk
