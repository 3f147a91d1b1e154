// The epilogue of a tile of C: bias, activation, dropout, residual and conversion, while the tile is in the first-level
// cache; included by *_isa.cpp files alone.
#pragma once

#include "ops/cpu/simd.h"
#include "ops/gemm/gemm.h"
#include "ops/gemm/gemm_activation_simd.h"

namespace brisk::BRISK_ISA {

inline Vec load_at(const Tensor& t, int64_t index, int64_t lanes) {
  return t.type == DType::bf16 ? load(t.bf16() + index, lanes) : load(t.f32() + index, lanes);
}

inline void store_at(const Tensor& t, int64_t index, Vec x, int64_t lanes) {
  if (t.type == DType::bf16) return store(t.bf16() + index, x, lanes);
  store(t.f32() + index, x, lanes);
}

inline Vec drop(Vec x, uint32_t row_key, int64_t col, IntVec threshold, Vec scale) {
  return keep_at_least(dropout_bits(row_key, static_cast<uint32_t>(col)), threshold, x * scale);
}

// Only a conversion: the bf16 gradient of an input. A line of 32 bf16 at a time where there are such instructions.
inline void store_tile(const float* acc, int64_t acc_stride, int64_t rows, int64_t cols, bf16_t* out, int64_t stride) {
  for (int64_t r = 0; r < rows; ++r, acc += acc_stride, out += stride) {
#if defined(__AVX512BF16__)
    if (cols == 2 * kLanes) {
      const __m512bh line = _mm512_cvtne2ps_pbh(load(acc + kLanes), load(acc));
      _mm512_storeu_si512(out, (__m512i)line);
      continue;
    }
#endif
    for (int64_t j = 0; j < cols; j += kLanes) store(out + j, load(acc + j), cols - j);
  }
}

template <Activation kKind, typename T>
inline void finish_rows(const float* acc, int64_t acc_stride, int64_t row, int64_t rows, int64_t col, int64_t cols,
                        const GemmEpilogue& epilogue, const uint32_t* row_keys) {
  const Tensor before = epilogue.before, residual = epilogue.residual;
  const bool drops = epilogue.dropout.active(), adds = epilogue.adds;
  const IntVec threshold = int_set1(drops ? epilogue.dropout.threshold() : 0);
  const Vec scale = set1(drops ? epilogue.dropout.scale() : 1.0f);
  for (int64_t r = 0; r < rows; ++r) {
    T* c = epilogue.c.as<T>() + (row + r) * epilogue.c.stride + col;
    for (int64_t j = 0; j < cols; j += kLanes) {
      const int64_t lanes = cols - j;
      Vec x = load(acc + r * acc_stride + j);
      if (epilogue.bias != nullptr) x += load(epilogue.bias + col + j, lanes);
      if (before) store_at(before, (row + r) * before.stride + col + j, x, lanes);
      x = activate<kKind>(x);
      if (drops) x = drop(x, row_keys[r], col + j, threshold, scale);
      if (residual) x += load_at(residual, (row + r) * residual.stride + col + j, lanes);
      if (adds) x += load(c + j, lanes);
      store(c + j, x, lanes);
    }
  }
}

inline void finish_tile(const float* acc, int64_t acc_stride, int64_t row, int64_t rows, int64_t col, int64_t cols,
                        const GemmEpilogue& epilogue, const uint32_t* row_keys) {
  const bool converts_only = epilogue.c.type == DType::bf16 && epilogue.bias == nullptr && !epilogue.before &&
                             epilogue.activation == Activation::none && !epilogue.dropout.active() &&
                             !epilogue.residual && !epilogue.adds;
  if (converts_only) {
    return store_tile(acc, acc_stride, rows, cols, epilogue.c.bf16() + row * epilogue.c.stride + col,
                      epilogue.c.stride);
  }
  with_activation(epilogue.activation, [&]<Activation kKind>() {
    with_element(epilogue.c.type, [&](auto of_c) {
      finish_rows<kKind, decltype(of_c)>(acc, acc_stride, row, rows, col, cols, epilogue, row_keys);
    });
  });
}

}  // namespace brisk::BRISK_ISA
