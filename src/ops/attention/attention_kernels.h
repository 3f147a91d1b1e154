// What attention's *_isa.cpp files offer attention_cpu.cpp, per instruction set.
#pragma once

#include "ops/attention/attention.h"
#include "ops/cpu/by_isa.h"

namespace brisk {

// What one thread computes in one go: queries [first_query, first_query + queries) of a sequence, for all query heads
// that read one key/value head. Backward's tasks always have the whole sequence, because they write the keys'
// gradients.
struct AttentionTask {
  int64_t sequence = 0, kv_head = 0;
  int64_t first_query = 0, queries = 0;
};

// Bytes of scratch a thread needs for the tasks of this op, each with at most that many queries and keys.
BRISK_EVERY_ISA(int64_t attention_forward_scratch(const AttentionForward& op, int64_t queries, int64_t keys);)
BRISK_EVERY_ISA(int64_t attention_backward_scratch(const AttentionForward& op, int64_t queries, int64_t keys);)

// `scratch` is aligned to 64 bytes; what it holds before does not matter. `next` is the task this thread does after
// this one, or none: its rows are fetched from memory meanwhile. At T = 128 that is half of the time otherwise.
BRISK_EVERY_ISA(void attention_forward_task(const AttentionForward& op, const AttentionTask& task,
                                            const AttentionTask* next, void* scratch);)
BRISK_EVERY_ISA(void attention_backward_task(const AttentionBackward& op, const AttentionTask& task,
                                             const AttentionTask* next, void* scratch);)

}  // namespace brisk
