// The loss, perplexity and accuracy of a decoder on held-out text.
//
//   Evaluator evaluator(decoder, parameters, {4096, 4096, 128}, Backend::cpu);
//   EvaluationResult result = evaluator.evaluate(*stream, part.chunks, ledger);
#pragma once

#include <cstdint>
#include <span>

#include "base/ledger.h"
#include "data/corpus.h"
#include "models/decoder.h"
#include "tensor/program.h"
#include "train/batch_buffer.h"

namespace brisk {

struct EvaluationResult {
  double loss = 0;  // mean over the predicted tokens, in nats, without label smoothing
  double accuracy = 0;
  int64_t tokens = 0;
  double perplexity() const;
};

class Evaluator {
 public:
  // `decoder` and `store` must outlive the evaluator.
  Evaluator(const Decoder& decoder, const ParameterStore& store, const RowCapacity& capacity, Backend backend);

  EvaluationResult evaluate(const TokenStream& stream, std::span<const Chunk> chunks, Ledger& ledger);

 private:
  const ParameterStore& store_;
  Tape tape_;
  LossValues loss_;
  Program program_;
  BatchBuffer batch_buffer_;
};

}  // namespace brisk
