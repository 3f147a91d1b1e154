// Logits of an opened model, for tests that compare models.
#pragma once

#include <vector>

#include "base/ledger.h"
#include "data/batch/batch.h"
#include "infer/batch_buffer.h"
#include "support/tiny_job.h"
#include "tensor/program.h"

namespace brisk::testing {

// One sequence.
inline MicroBatch sequence_of(const std::vector<int32_t>& tokens) {
  MicroBatch batch;
  batch.tokens = tokens;
  batch.targets.assign(tokens.size(), -1);
  batch.sequence.assign(tokens.size(), 0);
  for (size_t i = 0; i < tokens.size(); ++i) batch.position.push_back(static_cast<int32_t>(i));
  batch.starts = {0, static_cast<int32_t>(tokens.size())};
  batch.longest = static_cast<int64_t>(tokens.size());
  return batch;
}

// [tokens, vocabulary]
inline std::vector<float> logits_of(const Decoder& decoder, const ParameterStore& store,
                                    const std::vector<int32_t>& tokens) {
  const auto rows = static_cast<int64_t>(tokens.size());
  const RowCapacity capacity{rows, 1, rows};
  Tape tape({.purpose = Tape::Purpose::evaluation, .activation_type = store.compute_type(), .rows = {capacity}});
  const Value logits = decoder.logits(tape);
  Program program(tape, {});
  program.allocate(store.device());
  BatchBuffer buffer(store.device(), capacity);
  DeviceBatch batch;
  batch.sets = {buffer.load(sequence_of(tokens))};
  Ledger ledger;
  program.forward(batch, ledger);
  return values_of(store.device(), program.value(logits, batch));
}

}  // namespace brisk::testing
