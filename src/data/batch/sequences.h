// What a loader delivers and an evaluation reads: numbered sequences, each of which can be put into a micro-batch.
// Pieces of documents, the rows of a table and masked texts are sequences of their own kind.
//
//   std::shared_ptr<const Sequences> train = text_sequences(stream, split.train.chunks);   // data/batch/chunk_sequences.h
//   train->count();                      // how many
//   train->rows(7);                      // token rows of one
//   train->append(7, epoch, 0, batch);   // and they are in the micro-batch
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "data/batch/batch.h"

namespace brisk {

// What is known of the lengths of all sequences.
struct LengthTotals {
  int64_t longest = 0;  // rows; 0 of no sequences
  int64_t rows = 0;     // of all
  double squares = 0;   // the sum of the squares of the lengths
  void add(int64_t length) {
    longest = std::max(longest, length);
    rows += length;
    squares += static_cast<double>(length) * static_cast<double>(length);
  }
};

// Any number of threads may call any of it at once.
class Sequences {
 public:
  virtual ~Sequences() = default;

  virtual int64_t count() const = 0;
  bool empty() const { return count() == 0; }
  // Row sets of a micro-batch in which a sequence has rows of its own; sets that are derived from these come after
  // them.
  virtual int sets() const { return 1; }
  virtual int64_t rows(int64_t index, int set = 0) const = 0;
  // Of a derived set too; where its rows are drawn, of as many as are expected.
  virtual LengthTotals totals(int set = 0) const = 0;
  int64_t longest(int set = 0) const { return totals(set).longest; }
  int64_t total_rows(int set = 0) const { return totals(set).rows; }
  int64_t all_rows() const {  // of all sets with rows of their own
    int64_t rows = 0;
    for (int set = 0; set < sets(); ++set) rows += total_rows(set);
    return rows;
  }
  virtual int64_t text_bytes() const { return 0; }  // that all targets stand for; 0: not known

  // One more sequence, its rows in every set; `sequence` is its number within the optimizer step. Only what draws anew
  // in each epoch depends on `epoch`.
  virtual void append(int64_t index, int64_t epoch, int32_t sequence, MicroBatch& batch) const = 0;

  // These will soon be appended: who has to read files for them may begin. Returns at once, and changes nothing but time.
  virtual void prefetch(std::span<const int64_t> /*indices*/) const {}
  virtual bool has_prefetch() const { return false; }
};

}  // namespace brisk
