// What a loader delivers and an evaluation reads: numbered sequences, each of which can be put into a micro-batch.
// Pieces of documents, the rows of a table and masked texts are sequences of their own kind.
//
//   std::shared_ptr<const Sequences> train = text_sequences(stream, split.train.chunks);   // data/batch/chunk_sequences.h
//   train->count();                      // how many
//   train->rows(7);                      // token rows of one
//   train->append(7, epoch, 0, batch);   // and they are in the micro-batch
#pragma once

#include <cstdint>

#include "data/batch/batch.h"

namespace brisk {

// Any number of threads may call any of it at once.
class Sequences {
 public:
  virtual ~Sequences() = default;

  virtual int64_t count() const = 0;
  bool empty() const { return count() == 0; }
  virtual int64_t rows(int64_t index) const = 0;
  virtual int64_t longest() const = 0;              // rows; 0 of no sequences
  virtual int64_t total_rows() const = 0;           // of all
  virtual double squared_rows() const = 0;          // the sum of the squares of the lengths
  virtual double picked_rows() const { return 0; }  // of a sequence on average, where not all rows have targets; else 0

  // One more sequence, its tokens and its targets; `sequence` is its number within the optimizer step. Only what draws
  // anew in each epoch depends on `epoch`.
  virtual void append(int64_t index, int64_t epoch, int32_t sequence, MicroBatch& batch) const = 0;
};

}  // namespace brisk
