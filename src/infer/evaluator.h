// The quality of a model on sequences it does not train on. Everything is summed up as it comes: nothing grows with the
// number of sequences.
//
//   Evaluator evaluator(model, parameters, {4096, 4096, 128}, {}, Backend::cpu);
//   EvaluationResult result = evaluator.evaluate(*sequences, ledger);
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>

#include "base/ledger.h"
#include "base/metrics.h"
#include "data/batch/sequences.h"
#include "infer/batch_layout.h"
#include "infer/class_predictor.h"
#include "infer/class_scores.h"
#include "infer/forward_run.h"
#include "models/model.h"

namespace brisk {

struct EvaluationResult {
  Metrics metrics;
  int64_t targets = 0;
  int64_t tokens = 0;                  // rows that were computed; of a language model each is a target
  std::optional<ClassScores> classes;  // of a classifier
};

// The metrics of a model that predicts tokens: loss (the mean over the targets, in nats, without label smoothing),
// perplexity and accuracy.
Metrics token_metrics(double loss = Metric::kNone, double accuracy = Metric::kNone);

class Evaluator {
 public:
  // `model` and `store` must outlive the evaluator, and `shared_with`, whose memory it then uses: the two must not be
  // active at the same time.
  Evaluator(const Model& model, const ParameterStore& store, const RowCapacity& capacity, const BatchLayout& layout,
            Backend backend, GemmFormat products = GemmFormat::own, const Program* shared_with = nullptr);

  // Of the first `count` sequences, or of all.
  EvaluationResult evaluate(const Sequences& sequences, Ledger& ledger,
                            int64_t count = std::numeric_limits<int64_t>::max());

 private:
  EvaluationResult evaluate_loss(const Sequences& sequences, Ledger& ledger, int64_t count);
  EvaluationResult evaluate_classes(const Sequences& sequences, Ledger& ledger, int64_t count);

  std::unique_ptr<ForwardRun> loss_run_;  // one of the two: sums of the loss, all that a language model is judged by
  std::unique_ptr<ClassPredictor> predictor_;
};

}  // namespace brisk
