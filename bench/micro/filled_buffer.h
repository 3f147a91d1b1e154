// A matrix that owns its memory, filled with values between -0.5 and 0.5, for micro-benchmarks.
//
//   const FilledBuffer x(4096, 256, DType::bf16);
//   op.x = x.view();
#pragma once

#include "base/random.h"
#include "tensor/device.h"
#include "tensor/tensor.h"

namespace brisk {

class FilledBuffer {
 public:
  FilledBuffer(int64_t rows, int64_t cols, DType type, uint64_t seed = 1)
      : rows_(rows), cols_(cols), type_(type), memory_(cpu_device(), rows * cols * size_of(type)) {
    const Tensor all = view();
    for (int64_t i = 0; i < rows * cols; ++i) {
      const float x = static_cast<float>(mix64(seed << 40 ^ static_cast<uint64_t>(i)) >> 40) * 0x1.0p-24f - 0.5f;
      if (type == DType::bf16) {
        all.bf16()[i] = to_bf16(x);
      } else {
        all.f32()[i] = x;
      }
    }
  }
  Tensor view() const { return matrix(memory_.data(), type_, rows_, cols_); }

 private:
  int64_t rows_, cols_;
  DType type_;
  Buffer memory_;  // in large pages, as a program's arena
};

}  // namespace brisk
