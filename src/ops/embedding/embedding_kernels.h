// What embedding_isa.cpp offers embedding_cpu.cpp, per instruction set.
#pragma once

#include "ops/cpu/by_isa.h"
#include "ops/embedding/embedding.h"

namespace brisk {

// The share of one thread in the gradients: columns [first, first + count), and of those the table rows and positions
// whose number leaves `remainder` when divided by `groups`. Shares never overlap, and every sum runs over the rows in
// order, so that the result is the same for any number of threads.
struct EmbeddingShare {
  int64_t first = 0, count = 0;
  int32_t groups = 1, remainder = 0;
};

// Rows [begin, end).
BRISK_VECTOR_ISAS(void embedding_forward_rows(const EmbeddingForward& op, int64_t begin, int64_t end);)
// Adds; zeroing is the caller's.
BRISK_VECTOR_ISAS(void embedding_backward_share(const EmbeddingBackward& op, const EmbeddingShare& share);)

}  // namespace brisk
