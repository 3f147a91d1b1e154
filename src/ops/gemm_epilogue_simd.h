// The epilogue of a tile of C: bias, activation, dropout, residual and conversion, while the tile is in the first-level
// cache; included by *_isa.cpp files alone.
#pragma once

#include "ops/gemm.h"
#include "ops/gemm_activation_simd.h"
#include "ops/simd.h"

namespace brisk::BRISK_ISA {

inline Vec load_at(const Tensor& t, int64_t index, int64_t lanes) {
  return t.type == DType::bf16 ? load(t.bf16() + index, lanes) : load(t.f32() + index, lanes);
}

inline void store_at(const Tensor& t, int64_t index, Vec x, int64_t lanes) {
  if (t.type == DType::bf16) return store(t.bf16() + index, x, lanes);
  store(t.f32() + index, x, lanes);
}

inline Vec drop(Vec x, uint32_t row_key, int64_t col, IntVec threshold, Vec scale) {
  return keep_at_least(random_bits(row_key, static_cast<uint32_t>(col)), threshold, x * scale);
}

inline void finish_tile(const float* acc, int64_t acc_stride, int64_t row, int64_t rows, int64_t col, int64_t cols,
                        const GemmEpilogue& epilogue, const uint32_t* row_keys) {
  const Tensor c = epilogue.c, before = epilogue.before, residual = epilogue.residual;
  const bool drops = epilogue.dropout.active();
  const IntVec threshold = int_set1(drops ? epilogue.dropout.threshold() : 0);
  const Vec scale = set1(drops ? epilogue.dropout.scale() : 1.0f);
  with_activation(epilogue.activation, [&]<Activation kKind>() {
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t j = 0; j < cols; j += kLanes) {
        const int64_t lanes = cols - j;
        Vec x = load(acc + r * acc_stride + j);
        if (epilogue.bias != nullptr) x += load(epilogue.bias + col + j, lanes);
        if (before) store_at(before, (row + r) * before.stride + col + j, x, lanes);
        x = activate<kKind>(x);
        if (drops) x = drop(x, row_keys[r], col + j, threshold, scale);
        if (residual) x += load_at(residual, (row + r) * residual.stride + col + j, lanes);
        const int64_t at = (row + r) * c.stride + col + j;
        if (epilogue.adds) x += load_at(c, at, lanes);
        store_at(c, at, x, lanes);
      }
    }
  });
}

}  // namespace brisk::BRISK_ISA
