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

// Heads at most this wide have kernels of their own (attention_narrow_isa.cpp): a task is of as many heads as have
// kNarrowColumns columns together, and its `kv_head` counts such blocks.
constexpr int64_t kNarrowWidth = 4, kNarrowColumns = 16;
BRISK_EVERY_ISA(int64_t narrow_attention_scratch(const AttentionForward& op, bool backward, int64_t queries,
                                                 int64_t keys);)
BRISK_EVERY_ISA(void narrow_attention_forward_task(const AttentionForward& op, const AttentionTask& task,
                                                   void* scratch);)
BRISK_EVERY_ISA(void narrow_attention_backward_task(const AttentionBackward& op, const AttentionTask& task,
                                                    void* scratch);)

// With the entropy, for heads of widths 2, 4 and 8: a task is of all heads.
BRISK_EVERY_ISA(int64_t entropy_attention_scratch(const AttentionForward& op, bool backward, int64_t queries,
                                                  int64_t keys);)
BRISK_EVERY_ISA(void entropy_attention_forward_task(const AttentionForward& op, const AttentionTask& task,
                                                    void* scratch);)
BRISK_EVERY_ISA(void entropy_attention_backward_task(const AttentionBackward& op, const AttentionTask& task,
                                                     void* scratch);)

}  // namespace brisk
