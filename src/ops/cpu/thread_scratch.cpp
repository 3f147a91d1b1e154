#include "ops/cpu/thread_scratch.h"

#include <cstdlib>
#include <memory>
#include <new>

#include "base/rounding.h"

namespace brisk::cpu {

void* thread_scratch(int64_t bytes) {
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  thread_local std::unique_ptr<void, Free> memory;
  thread_local int64_t size = 0;
  if (size < bytes) {
    constexpr int64_t kPage = 4096;
    const int64_t pages = round_up(bytes, kPage);
    size = 0;
    memory.reset(std::aligned_alloc(kPage, static_cast<size_t>(pages)));
    if (memory == nullptr) throw std::bad_alloc();
    size = pages;
  }
  return memory.get();
}

}  // namespace brisk::cpu
