// What decoding with a ConditionalModel keeps: the keys and values of every text so far, each in a slot of its own, and what
// encode() made of their sources, which several texts may read.
//
//   ForwardRun encoder(store, ..., [&](Tape& tape) { return model.encode(tape); });
//   ForwardRun decoder(store, ..., [&](Tape& tape) { return model.next_token_logits(tape); });
//   DecodingCache cache(store, model, /*slots=*/64, /*capacity=*/128);
//   encoder.forward(sources, ledger);
//   cache.read_memory(encoder.value());                     // which stays there until the encoder runs again
//   cache.begin({{.slot = 0, .length = 1, .memory_begin = 0, .memory_end = 7}, ...});   // for each sequence of the batch
//   decoder.forward(next_tokens, ledger, &cache.entries()); // appends the batch's rows, and reads
//   cache.copy({{.from = 0, .to = 5, .length = 1}});        // slot 5 goes on from where slot 0 is
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/model.h"
#include "ops/rows/rows_copy.h"
#include "tensor/parameter.h"
#include "tensor/program.h"

namespace brisk {

class DecodingCache {
 public:
  // `capacity`: rows of a slot. `memory_rows`: that keep_memory() has room for. The store's device has the memory: bytes().
  DecodingCache(const ParameterStore& store, const ConditionalModel& model, int64_t slots, int64_t capacity,
                int64_t memory_rows = 0);

  // One sequence of the next batch.
  struct Sequence {
    int64_t slot = 0;
    int64_t length = 0;  // with the batch's rows
    int64_t memory_begin = 0, memory_end = 0;
  };
  // What encode() made, [N, memory_width()], in device memory.
  void read_memory(const Tensor& memory) { entries_.memory = memory; }
  // The same of some sources after others: copied, so that more can be encoded.
  void keep_memory(const Tensor& memory, int64_t first_row);
  void begin(std::span<const Sequence> sequences);
  const KeyValueCache& entries() const { return entries_; }

  // The first `length` rows of slot `from`, copied to slot `to`. A slot that is copied to may not be in another copy.
  struct Copy {
    int64_t from = 0, to = 0, length = 0;
  };
  void copy(std::span<const Copy> copies);

  static int64_t bytes(const ConditionalModel& model, DType type, int64_t slots, int64_t capacity);

 private:
  Device& device_;
  int64_t slots_;
  Buffer memory_;  // keys and values
  Buffer kept_;    // what keep_memory() copied
  Tensor kept_rows_;
  Buffer ranges_;  // begin, end, memory_begin, memory_end
  Buffer moves_;
  KeyValueCache entries_;
  std::vector<int32_t> staged_;
  std::vector<RowMove> staged_moves_;
};

}  // namespace brisk
