// A batch is ragged: nothing in brisk needs padding. A row set is N rows and where its S sequences start.
//
//   sequences of 2 and 3 tokens:   rows 5, sequences 2, longest 3, starts 0 2 5, position 0 1 0 1 2, sequence 0 0 1 1 1
#pragma once

#include <cstdint>

namespace brisk {

// Pointers are to device memory.
struct RowSet {
  int64_t rows = 0;                   // N
  int64_t sequences = 0;              // S
  int64_t longest = 0;                // T
  const int32_t* starts = nullptr;    // [S + 1] first row of each sequence; starts[S] = N
  const int32_t* position = nullptr;  // [N] position of the row within its sequence
  const int32_t* sequence = nullptr;  // [N] number of its sequence in the optimizer step; for random draws alone
  bool even = false;                  // known: every sequence has T rows, and no row belongs to none
};

// What the sequences of a row set are like on average, to count operations with before there is a batch.
struct RowMeans {
  double rows = 0;       // of a sequence
  double attended = 0;   // of the sequence that a row is in, on average over the rows: what attention costs
  bool derived = false;  // its rows are another set's, and no tokens of their own
};

}  // namespace brisk
