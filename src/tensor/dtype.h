// The number formats a tensor can have, and the two of 16 bits in software.
//
//   size_of(DType::bf16);        // 2 bytes
//   to_float(to_bf16(1.001f));   // 1: eight bits of it are kept
#pragma once

#include <bit>
#include <cstdint>
#include <string_view>

#include "base/host_device.h"
#include "tensor/half_float.h"

namespace brisk {

// f16 is IEEE half precision. e4m3 and e5m2, a byte each, are of products on a GPU alone: whoever reads a matrix of
// them has the factor that its numbers were divided by.
enum class DType : uint8_t { f32, bf16, i32, f16, e4m3, e5m2 };

// What products on a GPU round their operands to: nothing beyond their type, ten bits of f32's mantissa (tf32), or
// eight bits with a factor a matrix, where the operands are bf16 (fp8).
enum class GemmFormat : uint8_t { own, tf32, fp8 };

BRISK_HOST_DEVICE constexpr int64_t size_of(DType type) {
  return type == DType::bf16 || type == DType::f16 ? 2 : type == DType::e4m3 || type == DType::e5m2 ? 1 : 4;
}
constexpr std::string_view dtype_name(DType type) {
  constexpr std::string_view kNames[] = {"f32", "bf16", "i32", "f16", "e4m3", "e5m2"};
  return kNames[static_cast<int>(type)];
}

// The upper half of an fp32, rounded to nearest even. A type of its own so that it never mixes with integers.
struct bf16_t {
  uint16_t bits = 0;
};

BRISK_HOST_DEVICE constexpr float to_float(bf16_t value) {
  return std::bit_cast<float>(static_cast<uint32_t>(value.bits) << 16);
}
BRISK_HOST_DEVICE constexpr float to_float(float value) { return value; }

BRISK_HOST_DEVICE constexpr bf16_t to_bf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return {static_cast<uint16_t>((bits >> 16) | 0x40u)};  // NaN stays NaN
  return {static_cast<uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16)};
}

// A type of its own for the same reason.
struct f16_t {
  uint16_t bits = 0;
};
BRISK_HOST_DEVICE constexpr float to_float(f16_t value) { return half_to_float(value.bits); }
BRISK_HOST_DEVICE constexpr f16_t to_f16(float value) { return {float_to_half(value)}; }

}  // namespace brisk
