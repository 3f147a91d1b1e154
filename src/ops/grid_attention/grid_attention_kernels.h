// What grid_attention_isa.cpp offers grid_attention_cpu.cpp, per instruction set.
#pragma once

#include "ops/cpu/by_isa.h"
#include "ops/grid_attention/grid_attention.h"

namespace brisk {

// Bytes of scratch that a thread needs, aligned to 64.
BRISK_VECTOR_ISAS(int64_t grid_attention_scratch(const GridAttentionShape& shape);)

// One region of one sequence, heads [first_head, end_head).
BRISK_VECTOR_ISAS(void grid_attention_forward_region(const GridAttentionForward& op, int64_t sequence, int32_t region,
                                                     int64_t first_head, int64_t end_head, void* scratch);)
// The same of one head; adds to `dbias` [P P], where there is a bias.
BRISK_VECTOR_ISAS(void grid_attention_backward_region(const GridAttentionBackward& op, int64_t sequence, int32_t region,
                                                      int64_t head, float* dbias, void* scratch);)

}  // namespace brisk
