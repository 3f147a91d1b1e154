#include "infer/evaluator.h"

#include <cmath>
#include <span>

namespace brisk {

Metrics token_metrics(double loss, double accuracy) {
  return {standard_metric("loss", loss), standard_metric("perplexity", std::exp(loss)),
          standard_metric("accuracy", accuracy)};
}

Evaluator::Evaluator(const Model& model, const ParameterStore& store, const RowCapacity& capacity,
                     const BatchLayout& layout, Backend backend, GemmFormat products, const Program* shared_with) {
  if (model.classes() > 0) {
    predictor_ = std::make_unique<ClassPredictor>(model, store, capacity, layout, backend, products, shared_with);
  } else {
    loss_run_ = std::make_unique<ForwardRun>(
        store, ForwardRun::Options{layout.capacities(capacity), backend, products, shared_with},
        [&](Tape& tape) { return model.loss(tape, {}).sums; });
  }
}

EvaluationResult Evaluator::evaluate(const Sequences& sequences, Ledger& ledger, int64_t count) {
  Ledger::Hold hold(ledger, Phase::evaluation);
  return predictor_ ? evaluate_classes(sequences, ledger, count) : evaluate_loss(sequences, ledger, count);
}

EvaluationResult Evaluator::evaluate_loss(const Sequences& sequences, Ledger& ledger, int64_t count) {
  double loss = 0, correct = 0, targets = 0;
  const int64_t tokens = loss_run_->forward(
      sequences, ledger,
      [&](const MicroBatch&) {
        float sums[4] = {};
        loss_run_->read(std::as_writable_bytes(std::span(sums)));
        loss += sums[0];
        correct += sums[1];
        targets += sums[2];
      },
      count);
  const double divisor = std::max(1.0, targets);
  return {token_metrics(loss / divisor, correct / divisor), std::llround(targets), tokens, {}};
}

EvaluationResult Evaluator::evaluate_classes(const Sequences& sequences, Ledger& ledger, int64_t count) {
  ClassScores scores(predictor_->classes());
  double loss = 0;
  const int64_t tokens = predictor_->run(
      sequences, ledger,
      [&](const ClassPredictor::Row& row) {
        if (row.target < 0) return;
        scores.add(row.target, likeliest_class(row.logits));
        loss += class_loss(row.logits, row.target);
      },
      count);
  const double divisor = std::max<double>(1, static_cast<double>(scores.count()));
  Metrics metrics = class_metrics(scores, loss / divisor);
  return {std::move(metrics), scores.count(), tokens, std::move(scores)};
}

}  // namespace brisk
