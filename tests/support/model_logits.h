// Logits of an opened model, for tests that compare models.
#pragma once

#include <vector>

#include "base/ledger.h"
#include "data/batch/batch.h"
#include "infer/forward/forward_run.h"
#include "models/decoder.h"
#include "support/micro_batches.h"
#include "support/tiny_job.h"

namespace brisk::testing {

// [tokens, vocabulary]
inline std::vector<float> logits_of(const Decoder& decoder, const ParameterStore& store,
                                    const std::vector<int32_t>& tokens) {
  const auto rows = static_cast<int64_t>(tokens.size());
  ForwardRun run(store, {.rows = {{rows, 1, rows}}}, [&](Tape& tape) { return decoder.logits(tape); });
  MicroBatch batch;
  add_sequence(batch.sets[0], tokens);
  Ledger ledger;
  run.forward(batch, ledger);
  std::vector<float> logits;
  run.read(logits);
  return logits;
}

}  // namespace brisk::testing
