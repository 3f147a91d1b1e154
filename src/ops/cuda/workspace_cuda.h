// Divides the workspace of one op into parts.
//
//   WorkspaceCarver carver(first_bytes + second_bytes);      // both rounded up to kAlignment
//   void* first = carver.take(first_bytes);
#pragma once

#include <cstdint>

#include "base/error.h"
#include "ops/cuda/cuda_stream.h"

namespace brisk::cuda {

class WorkspaceCarver {
 public:
  static constexpr int64_t kAlignment = 256;
  explicit WorkspaceCarver(int64_t bytes) : WorkspaceCarver(bytes, bytes > 0 ? workspace(bytes) : nullptr) {}
  WorkspaceCarver(int64_t bytes, void* memory) : left_(bytes), at_(static_cast<char*>(memory)) {}
  void* take(int64_t bytes) {
    if (bytes == 0) return nullptr;
    BRISK_CHECK(bytes <= left_ && bytes % kAlignment == 0, "{} bytes of a workspace with {} left", bytes, left_);
    void* taken = at_;
    at_ += bytes;
    left_ -= bytes;
    return taken;
  }

 private:
  int64_t left_;
  char* at_;
};

}  // namespace brisk::cuda
