// What grid_attention_isa.cpp offers grid_attention_cpu.cpp, per instruction set.
#pragma once

#include "ops/cpu/by_isa.h"
#include "ops/grid_attention/grid_attention.h"

namespace brisk {

// Bytes of scratch that a thread needs, aligned to 64.
BRISK_VECTOR_ISAS(int64_t grid_attention_scratch(const GridAttentionShape& shape);)

// A region of a sequence. `next`: the one that this thread does after it, or none: its rows are fetched from memory meanwhile.
struct GridTask {
  int64_t sequence = 0;
  int32_t region = 0;
};

// Heads [first_head, end_head).
BRISK_VECTOR_ISAS(void grid_attention_forward_region(const GridAttentionForward& op, const GridTask& task,
                                                     const GridTask* next, int64_t first_head, int64_t end_head,
                                                     void* scratch);)
// Likewise; adds to part `part` of the bias's gradient, where there is one.
BRISK_VECTOR_ISAS(void grid_attention_backward_region(const GridAttentionBackward& op, const GridTask& task,
                                                      const GridTask* next, int64_t first_head, int64_t end_head,
                                                      int64_t part, void* scratch);)

}  // namespace brisk
