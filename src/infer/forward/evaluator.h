// The quality of a model on sequences it does not train on. Everything is summed up as it comes: nothing grows with the
// number of sequences.
//
//   const auto evaluator = make_token_evaluator({.model = model, .store = parameters, .capacity = {4096, 4096, 128}});
//   EvaluationResult result = evaluator->evaluate(*sequences, ledger);
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "base/ledger.h"
#include "base/metrics.h"
#include "data/batch/sequences.h"
#include "infer/answer/class_scores.h"
#include "infer/forward/batch_layout.h"
#include "models/model.h"
#include "tensor/parameter.h"
#include "tensor/program.h"

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

// What evaluations of disjoint sequences add up to.
struct EvaluationSums {
  std::vector<double> numbers;
  std::vector<ClassScores::Confusion> confusions;  // of a classifier
};

class Evaluator {
 public:
  virtual ~Evaluator() = default;
  // Of the first `count` sequences, or of all.
  EvaluationResult evaluate(const Sequences& sequences, Ledger& ledger,
                            int64_t count = std::numeric_limits<int64_t>::max()) {
    return result(sums(sequences, ledger, count));
  }
  virtual EvaluationSums sums(const Sequences& sequences, Ledger& ledger, int64_t count) = 0;
  virtual EvaluationResult result(const EvaluationSums& sums) const = 0;
};

// What is evaluated. The model and the store must outlive the evaluator, and `shared_with`, whose memory it then uses: the
// two must not be active at the same time.
struct EvaluatorParts {
  const Model& model;
  const ParameterStore& store;
  RowCapacity capacity;
  BatchLayout layout;
  Backend backend = Backend::cpu;
  GemmFormat products = GemmFormat::own;
  const Program* shared_with = nullptr;
};
using MakeEvaluator = std::function<std::unique_ptr<Evaluator>(const EvaluatorParts& parts)>;

// By the model's own loss: token_metrics().
std::unique_ptr<Evaluator> make_token_evaluator(const EvaluatorParts& parts);
// By the classes it names: class_metrics().
std::unique_ptr<Evaluator> make_class_evaluator(const EvaluatorParts& parts);

}  // namespace brisk
