// A thread's scratch, kept for the next call and the next op that asks: it only grows (ops/cpu/cpu_workspace.h).
#pragma once

#include <cstdint>

namespace brisk::cpu {

// Aligned to a page; what it holds before does not matter.
void* thread_scratch(int64_t bytes);

}  // namespace brisk::cpu
