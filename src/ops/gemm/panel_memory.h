// Memory for packed panels. It lives as long as the program and only grows, so steady training allocates nothing; in huge
// pages, since every tile reads a panel from end to end.
//
//   static PanelMemory memory;
//   float* panels = memory.reserve(floats);      // invalidates the result of earlier calls
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <new>

#include "base/rounding.h"

namespace brisk::cpu {

class PanelMemory {
 public:
  ~PanelMemory() {
    if (memory_ != nullptr) munmap(memory_, static_cast<size_t>(bytes_ + kHugePage));
  }
  float* reserve(int64_t floats) {
    const int64_t bytes = round_up(std::max<int64_t>(floats, 1) * 4, kHugePage);
    if (bytes > bytes_) {
      if (memory_ != nullptr) munmap(memory_, static_cast<size_t>(bytes_ + kHugePage));
      memory_ = nullptr;
      bytes_ = 0;
      void* const memory = mmap(nullptr, static_cast<size_t>(bytes + kHugePage), PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (memory == MAP_FAILED) throw std::bad_alloc();
      memory_ = memory;
      bytes_ = bytes;
      data_ = reinterpret_cast<float*>(
          static_cast<uintptr_t>(round_up(static_cast<int64_t>(reinterpret_cast<uintptr_t>(memory_)), kHugePage)));
      madvise(data_, static_cast<size_t>(bytes_), MADV_HUGEPAGE);
    }
    return data_;
  }

 private:
  static constexpr int64_t kHugePage = 2 << 20;
  void* memory_ = nullptr;
  float* data_ = nullptr;
  int64_t bytes_ = 0;
};

}  // namespace brisk::cpu
