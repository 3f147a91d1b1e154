// Sequences to ragged micro-batches.
//
//   std::vector<MicroBatch> parts = pack_step(*stream, chunks, micro_batch_tokens);   // one optimizer step
//
//   EvaluationPacker packer(*stream, chunks, micro_batch_tokens);                     // a whole set, one at a time
//   MicroBatch batch;
//   while (packer.next(batch)) ...
//
// A sequence is never split, and `sequence` numbers it within the step however the step is divided.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/batch.h"
#include "data/corpus.h"
#include "data/token_stream.h"

namespace brisk {

// Which of the sequences, by number, go into each micro-batch: as few as fit (no more than micro_batch_tokens rows
// each), as even in rows as can be, ascending within each. The lengths must not exceed micro_batch_tokens.
std::vector<std::vector<int32_t>> divide_step(std::span<const Chunk> chunks, int64_t micro_batch_tokens);

// The chunks numbered `members`; `sequence` is first_sequence + the number.
MicroBatch pack(const TokenStream& stream, std::span<const Chunk> chunks, std::span<const int32_t> members,
                int32_t first_sequence = 0);

std::vector<MicroBatch> pack_step(const TokenStream& stream, std::span<const Chunk> chunks, int64_t micro_batch_tokens);

// Chunks in their order, each micro-batch filled as far as the next whole sequence allows.
class EvaluationPacker {
 public:
  EvaluationPacker(const TokenStream& stream, std::span<const Chunk> chunks, int64_t micro_batch_tokens);
  bool next(MicroBatch& batch);  // false at the end; `batch` is overwritten, its memory reused

 private:
  const TokenStream& stream_;
  std::span<const Chunk> chunks_;
  int64_t micro_batch_tokens_;
  int64_t at_ = 0;
};

}  // namespace brisk
