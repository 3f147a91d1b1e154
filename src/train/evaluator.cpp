#include "train/evaluator.h"

#include <cmath>

#include "data/packer.h"

namespace brisk {

double EvaluationResult::perplexity() const { return std::exp(loss); }

Evaluator::Evaluator(const Decoder& decoder, const ParameterStore& store, const RowCapacity& capacity, Backend backend)
    : store_(store),
      tape_({.purpose = Tape::Purpose::evaluation, .activation_type = store.compute_type(), .rows = {capacity}}),
      loss_(decoder.loss(tape_, {})),
      program_(tape_, {.backend = backend}),
      batch_buffer_(store.device(), capacity) {
  program_.allocate(store.device());
}

EvaluationResult Evaluator::evaluate(const TokenStream& stream, std::span<const Chunk> chunks, Ledger& ledger) {
  Ledger::Hold hold(ledger, Phase::evaluation);
  double loss = 0, correct = 0, tokens = 0;
  DeviceBatch device_batch;
  EvaluationPacker packer(stream, chunks, tape_.rows(0).rows);
  MicroBatch batch;
  while (packer.next(batch)) {
    device_batch.sets = {batch_buffer_.load(batch)};
    program_.forward(device_batch, ledger);
    float sums[3] = {};
    store_.device().copy_out(sums, program_.value(loss_.sums, device_batch).data, sizeof(sums));
    loss += sums[0];
    correct += sums[1];
    tokens += sums[2];
  }
  const double count = std::max(1.0, tokens);
  return {loss / count, correct / count, std::llround(tokens)};
}

}  // namespace brisk
