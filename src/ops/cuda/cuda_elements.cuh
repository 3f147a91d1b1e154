// What row-wise kernels share: neighbouring elements at once (eight: 16 bytes of bf16), sums across lanes, dropout's
// draws, and the choice of types at launch.
//
//   with_type(op.x.type, [&](auto x) { launch(kernel<decltype(x)>, {...}, op); });      // host
//   const Floats<8> x = load<8>(row + column);                                          // kernel
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "base/random.h"
#include "ops/cuda/cuda_instructions.cuh"
#include "ops/cuda/cuda_launch.cuh"
#include "ops/dropout.h"
#include "tensor/rows.h"
#include "tensor/tensor.h"

namespace brisk::cuda {

// f32 or bf16. Of f16 there are only the combinations that programs have: with_any_type where there is one type, and
// where there are several a line that names them. All of them would take twice as long to compile.
template <typename Body>
void with_type(DType type, const Body& body) {
  expect(type == DType::f32 || type == DType::bf16, "this op takes f32 and bf16");
  if (type == DType::bf16) {
    body(bf16_t{});
  } else {
    body(float{});
  }
}
template <typename Body>
void with_any_type(DType type, const Body& body) {
  if (type == DType::f16) {
    body(f16_t{});
  } else {
    with_type(type, body);
  }
}

// Whether rows can be taken eight columns at a time; no tensor can.
inline bool in_eights(const Tensor& t) {
  return !t || (reinterpret_cast<uintptr_t>(t.data) % 16 == 0 && t.stride % 8 == 0 && t.cols % 8 == 0);
}

template <int kCount>
struct Floats {
  float v[kCount];
};

__device__ inline float low_bf16(uint32_t pair) { return __uint_as_float(pair << 16); }
__device__ inline float high_bf16(uint32_t pair) { return __uint_as_float(pair & 0xFFFF0000u); }

// Elements as they lie in memory. A kernel that reads them a row ahead waits for them where it needs their floats, and
// not before.
template <int kCount, typename T>
struct Elements {
  T v[kCount];
};
template <typename T>
struct Elements<8, T> {
  uint4 words[sizeof(T) / 2];
};

template <int kCount, typename T>
__device__ inline Elements<kCount, T> read(const T* from) {
  Elements<kCount, T> to;
  if constexpr (kCount == 8) {
#pragma unroll
    for (int i = 0; i < static_cast<int>(sizeof(T) / 2); ++i) to.words[i] = reinterpret_cast<const uint4*>(from)[i];
  } else {
#pragma unroll
    for (int i = 0; i < kCount; ++i) to.v[i] = from[i];
  }
  return to;
}

__device__ inline float float_of(float value) { return value; }
__device__ inline float float_of(bf16_t value) { return __uint_as_float(static_cast<uint32_t>(value.bits) << 16); }
__device__ inline float float_of(f16_t value) { return floats_of_f16(value.bits).x; }

template <int kCount, typename T>
__device__ inline Floats<kCount> floats_of(const Elements<kCount, T>& from) {
  Floats<kCount> to;
#pragma unroll
  for (int i = 0; i < kCount; ++i) to.v[i] = float_of(from.v[i]);
  return to;
}
__device__ inline Floats<8> floats_of(const Elements<8, float>& from) {
  const uint4 a = from.words[0], b = from.words[1];
  return {{__uint_as_float(a.x), __uint_as_float(a.y), __uint_as_float(a.z), __uint_as_float(a.w), __uint_as_float(b.x),
           __uint_as_float(b.y), __uint_as_float(b.z), __uint_as_float(b.w)}};
}
__device__ inline Floats<8> floats_of(const Elements<8, bf16_t>& from) {
  const uint4 a = from.words[0];
  return {{low_bf16(a.x), high_bf16(a.x), low_bf16(a.y), high_bf16(a.y), low_bf16(a.z), high_bf16(a.z), low_bf16(a.w),
           high_bf16(a.w)}};
}
__device__ inline Floats<8> floats_of(const Elements<8, f16_t>& from) {
  const uint4 a = from.words[0];
  const float2 p = floats_of_f16(a.x), q = floats_of_f16(a.y), r = floats_of_f16(a.z), s = floats_of_f16(a.w);
  return {{p.x, p.y, q.x, q.y, r.x, r.y, s.x, s.y}};
}

template <int kCount, typename T>
__device__ inline Floats<kCount> load(const T* from) {
  return floats_of(read<kCount>(from));
}

template <int kCount>
__device__ inline void store(float* to, const Floats<kCount>& from) {
  if constexpr (kCount == 8) {
    reinterpret_cast<float4*>(to)[0] = make_float4(from.v[0], from.v[1], from.v[2], from.v[3]);
    reinterpret_cast<float4*>(to)[1] = make_float4(from.v[4], from.v[5], from.v[6], from.v[7]);
  } else {
    for (int i = 0; i < kCount; ++i) to[i] = from.v[i];
  }
}

template <int kCount>
__device__ inline void store(bf16_t* to, const Floats<kCount>& from) {
  if constexpr (kCount == 8) {
    *reinterpret_cast<uint4*>(to) = make_uint4(pack_bf16(from.v[0], from.v[1]), pack_bf16(from.v[2], from.v[3]),
                                               pack_bf16(from.v[4], from.v[5]), pack_bf16(from.v[6], from.v[7]));
  } else {
    for (int i = 0; i < kCount; ++i) to[i].bits = static_cast<uint16_t>(pack_bf16(from.v[i], 0));
  }
}

// Beyond 65504 it is infinite: the step is then skipped (optim/loss_scale.h).
template <int kCount>
__device__ inline void store(f16_t* to, const Floats<kCount>& from) {
  if constexpr (kCount == 8) {
    *reinterpret_cast<uint4*>(to) = make_uint4(pack_f16(from.v[0], from.v[1]), pack_f16(from.v[2], from.v[3]),
                                               pack_f16(from.v[4], from.v[5]), pack_f16(from.v[6], from.v[7]));
  } else {
    for (int i = 0; i < kCount; ++i) to[i].bits = static_cast<uint16_t>(pack_f16(from.v[i], 0));
  }
}

template <typename T>
__device__ inline float load_one(const T* from) {
  return load<1>(from).v[0];
}
template <typename T>
__device__ inline void store_one(T* to, float value) {
  store(to, Floats<1>{{value}});
}

// Of a tensor whose type is looked at as the kernel runs, `at` elements from its beginning.
template <int kCount>
__device__ inline Floats<kCount> load_any(const Tensor& t, int64_t at) {
  if (t.type == DType::f32) return load<kCount>(t.f32() + at);
  if (t.type == DType::bf16) return load<kCount>(t.bf16() + at);
  return load<kCount>(t.f16() + at);
}
template <int kCount>
__device__ inline void store_any(const Tensor& t, int64_t at, const Floats<kCount>& values) {
  if (t.type == DType::f32) return store(t.f32() + at, values);
  if (t.type == DType::bf16) return store(t.bf16() + at, values);
  store(t.f16() + at, values);
}

// How many lanes of a warp share a row of so many loads: a power of two, so that a warp takes several short rows.
inline int lanes_for(int64_t loads) {
  int lanes = 1;
  while (lanes < 32 && lanes < loads) lanes *= 2;
  return lanes;
}

// The sum over `kLanes` neighbouring lanes, in each of them; all 32 lanes take part.
template <int kLanes>
__device__ inline float sum_of_lanes(float value) {
#pragma unroll
  for (int distance = kLanes / 2; distance > 0; distance /= 2) value += __shfl_xor_sync(~0u, value, distance);
  return value;
}

struct KeptPair {
  bool here, further;
};

// Dropout as a kernel's argument (ops/dropout.h): the same bits.
struct Draws {
  uint32_t threshold = 0;  // 0: nothing is dropped
  float scale = 1;
  uint64_t key = 0;
  const uint64_t* step_key = nullptr;  // in device memory, or none
  const int32_t* sequence = nullptr;
  const int32_t* position = nullptr;

  __device__ uint64_t drawn_key() const { return step_key == nullptr ? key : mix64(*step_key ^ key); }

  __device__ uint32_t row_key(int64_t row) const { return threshold == 0 ? 0 : row_key(row, drawn_key()); }
  // Of drawn_key(), which a kernel of many rows asks for once.
  __device__ uint32_t row_key(int64_t row, uint64_t drawn) const {
    return random_row_key(drawn, static_cast<uint32_t>(sequence[row]), static_cast<uint32_t>(position[row]));
  }
  __device__ float factor(uint32_t row_key, int64_t column) const {
    return dropout_bits(row_key, static_cast<uint32_t>(column)) >= threshold ? scale : 0.0f;
  }
  // Of a column whose bit of 8 is 0 and of the one 8 further, by one draw: whether they are kept.
  __device__ KeptPair kept(uint32_t row_key, int64_t column) const {
    // Half of random_bits each. The upper half is that of the unfolded ones, whose lower half does not matter to a
    // threshold that is a multiple of 2^16.
    const uint32_t bits = random_unfolded(row_key, static_cast<uint32_t>(column));
    return {((bits << 16) ^ (bits & 0xFFFF0000u)) >= threshold, bits >= threshold};
  }
};

inline Draws draws_of(const Dropout& dropout, const RowSet& rows) {
  if (!dropout.active()) return {};
  return {dropout.threshold(), dropout.scale(), dropout.key, dropout.step_key, rows.sequence, rows.position};
}

}  // namespace brisk::cuda
