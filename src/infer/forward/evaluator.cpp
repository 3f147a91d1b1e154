#include "infer/forward/evaluator.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "infer/answer/class_predictor.h"
#include "infer/forward/forward_run.h"

namespace brisk {

Metrics token_metrics(double loss, double accuracy) {
  return {standard_metric("loss", loss), standard_metric("perplexity", std::exp(loss)),
          standard_metric("accuracy", accuracy)};
}

namespace {

class TokenEvaluator final : public Evaluator {
 public:
  explicit TokenEvaluator(const EvaluatorParts& parts)
      : run_(parts.store, {parts.layout.capacities(parts.capacity), parts.backend, parts.products, parts.shared_with},
             [&](Tape& tape) { return parts.model.loss(tape, {}).sums; }) {}

  EvaluationSums sums(const Sequences& sequences, Ledger& ledger, int64_t count) override {
    Ledger::Hold hold(ledger, Phase::evaluation);
    double loss = 0, correct = 0, targets = 0;
    const int64_t tokens = run_.forward(
        sequences, ledger,
        [&](const MicroBatch&) {
          float sums[4] = {};
          run_.read(std::as_writable_bytes(std::span(sums)));
          loss += sums[0];
          correct += sums[1];
          targets += sums[2];
        },
        count);
    return {{loss, correct, targets, static_cast<double>(tokens)}, {}};
  }
  EvaluationResult result(const EvaluationSums& sums) const override {
    const double loss = sums.numbers[0], correct = sums.numbers[1], targets = sums.numbers[2];
    const double divisor = std::max(1.0, targets);
    return {token_metrics(loss / divisor, correct / divisor), std::llround(targets), std::llround(sums.numbers[3]), {}};
  }

 private:
  ForwardRun run_;
};

class ClassEvaluator final : public Evaluator {
 public:
  explicit ClassEvaluator(const EvaluatorParts& parts)
      : predictor_(parts.model, parts.store, parts.capacity, parts.layout, parts.backend, parts.products,
                   parts.shared_with) {}

  EvaluationSums sums(const Sequences& sequences, Ledger& ledger, int64_t count) override {
    Ledger::Hold hold(ledger, Phase::evaluation);
    ClassScores scores(predictor_.classes());
    double loss = 0;
    const int64_t tokens = predictor_.run(
        sequences, ledger,
        [&](const ClassPredictor::Row& row) {
          if (row.target < 0) return;
          scores.add(row.target, likeliest_class(row.logits));
          loss += class_loss(row.logits, row.target);
        },
        count);
    return {{loss, static_cast<double>(tokens)}, scores.confusions()};
  }
  EvaluationResult result(const EvaluationSums& sums) const override {
    ClassScores scores(predictor_.classes());
    for (const ClassScores::Confusion& each : sums.confusions) scores.add(each.label, each.predicted, each.examples);
    const double divisor = std::max<double>(1, static_cast<double>(scores.count()));
    Metrics metrics = class_metrics(scores, sums.numbers[0] / divisor);
    return {std::move(metrics), scores.count(), std::llround(sums.numbers[1]), std::move(scores)};
  }

 private:
  ClassPredictor predictor_;
};

}  // namespace

std::unique_ptr<Evaluator> make_token_evaluator(const EvaluatorParts& parts) {
  return std::make_unique<TokenEvaluator>(parts);
}

std::unique_ptr<Evaluator> make_class_evaluator(const EvaluatorParts& parts) {
  return std::make_unique<ClassEvaluator>(parts);
}

}  // namespace brisk
