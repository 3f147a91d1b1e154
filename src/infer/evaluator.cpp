#include "infer/evaluator.h"

#include <cmath>

#include "data/batch/packer.h"

namespace brisk {

Metrics token_metrics(double loss, double accuracy) {
  return {standard_metric("loss", loss), standard_metric("perplexity", std::exp(loss)),
          standard_metric("accuracy", accuracy)};
}

Evaluator::LossRun::LossRun(const Model& model, const ParameterStore& store, const RowCapacity& capacity,
                            const RowPicking& picking, Backend backend, ProductFormat products, const Program* beside)
    : tape({.purpose = Tape::Purpose::evaluation,
            .activation_type = store.compute_type(),
            .rows = picking.row_sets(capacity)}),
      loss(model.loss(tape, {})),
      program(tape, {.backend = backend, .products = products}),
      buffer(store.device(), tape) {
  if (beside != nullptr) {
    program.allocate_with(*beside);
  } else {
    program.allocate(store.device());
  }
}

Evaluator::Evaluator(const Model& model, const ParameterStore& store, const RowCapacity& capacity,
                     const RowPicking& picking, Backend backend, ProductFormat products, const Program* beside)
    : store_(store) {
  if (model.classes() > 0) {
    predictor_ = std::make_unique<ClassPredictor>(model, store, capacity, picking, backend, products, beside);
  } else {
    loss_run_ = std::make_unique<LossRun>(model, store, capacity, picking, backend, products, beside);
  }
}

EvaluationResult Evaluator::evaluate(const Sequences& sequences, Ledger& ledger, int64_t count) {
  Ledger::Hold hold(ledger, Phase::evaluation);
  return predictor_ ? evaluate_classes(sequences, ledger, count) : evaluate_loss(sequences, ledger, count);
}

EvaluationResult Evaluator::evaluate_loss(const Sequences& sequences, Ledger& ledger, int64_t count) {
  LossRun& run = *loss_run_;
  double loss = 0, correct = 0, targets = 0;
  int64_t tokens = 0;
  DeviceBatch device_batch;
  EvaluationPacker packer(sequences,
                          {.rows = run.tape.rows(0).rows, .sequences = run.tape.rows(0).sequences, .count = count});
  MicroBatch batch;
  while (packer.next(batch)) {
    run.buffer.load(batch, device_batch.sets);
    run.program.forward(device_batch, ledger);
    float sums[4] = {};
    store_.device().copy_out(sums, run.program.value(run.loss.sums, device_batch).data, sizeof(sums));
    loss += sums[0];
    correct += sums[1];
    targets += sums[2];
    tokens += batch.rows();
  }
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
