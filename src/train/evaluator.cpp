#include "train/evaluator.h"

#include <cmath>

#include "data/packer.h"

namespace brisk {

double EvaluationResult::perplexity() const { return std::exp(loss); }

Evaluator::Evaluator(const Model& model, const ParameterStore& store, const RowCapacity& capacity,
                     const RowPicking& picking, Backend backend)
    : store_(store),
      tape_({.purpose = Tape::Purpose::evaluation,
             .activation_type = store.compute_type(),
             .rows = picking.row_sets(capacity)}),
      loss_(model.loss(tape_, {})),
      program_(tape_, {.backend = backend}),
      batch_buffer_(store.device(), capacity) {
  program_.allocate(store.device());
}

EvaluationResult Evaluator::evaluate(const Sequences& sequences, Ledger& ledger, int64_t count) {
  Ledger::Hold hold(ledger, Phase::evaluation);
  double loss = 0, correct = 0, targets = 0;
  int64_t tokens = 0;
  DeviceBatch device_batch;
  EvaluationPacker packer(sequences,
                          {.rows = tape_.rows(0).rows, .sequences = tape_.rows(0).sequences, .count = count});
  MicroBatch batch;
  while (packer.next(batch)) {
    device_batch.sets = {batch_buffer_.load(batch)};
    program_.forward(device_batch, ledger);
    float sums[3] = {};
    store_.device().copy_out(sums, program_.value(loss_.sums, device_batch).data, sizeof(sums));
    loss += sums[0];
    correct += sums[1];
    targets += sums[2];
    tokens += batch.rows();
  }
  const double divisor = std::max(1.0, targets);
  return {loss / divisor, correct / divisor, std::llround(targets), tokens, {}};
}

}  // namespace brisk
