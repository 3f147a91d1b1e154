// A view of a matrix in device memory: a pointer, a type, rows, columns, and the distance between rows.
//
//   const Tensor qkv = matrix(memory, DType::bf16, N, 3 * D);
//   const Tensor keys = qkv.columns(D, D);                      // [N, D], rows 3 D apart
//
// Letters used in shapes, everywhere (docs/architecture.md): N token rows of a micro-batch, S sequences in it, T
// longest sequence, D model width, H heads, K width of a head, F feed-forward width, L layers, V vocabulary.
//
// Only ops/ may dereference `data`. Everyone else passes views on, or copies through Device.
#pragma once

#include <cstdint>

#include "tensor/dtype.h"

namespace brisk {

struct Tensor {
  void* data = nullptr;
  DType type = DType::f32;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t stride = 0;  // elements from one row to the next; >= cols

  BRISK_HOST_DEVICE explicit operator bool() const { return data != nullptr; }
  template <typename T>
  BRISK_HOST_DEVICE T* as() const {
    return static_cast<T*>(data);
  }
  BRISK_HOST_DEVICE float* f32() const { return static_cast<float*>(data); }
  BRISK_HOST_DEVICE bf16_t* bf16() const { return static_cast<bf16_t*>(data); }
  BRISK_HOST_DEVICE f16_t* f16() const { return static_cast<f16_t*>(data); }
  BRISK_HOST_DEVICE int32_t* i32() const { return static_cast<int32_t*>(data); }

  // Columns [first, first + count) of this matrix, in place.
  BRISK_HOST_DEVICE Tensor columns(int64_t first, int64_t count) const {
    return {static_cast<char*>(data) + first * size_of(type), type, rows, count, stride};
  }
  BRISK_HOST_DEVICE Tensor row_range(int64_t first, int64_t count) const {
    return {static_cast<char*>(data) + first * stride * size_of(type), type, count, cols, stride};
  }
};

inline Tensor matrix(void* data, DType type, int64_t rows, int64_t cols) { return {data, type, rows, cols, cols}; }

}  // namespace brisk
