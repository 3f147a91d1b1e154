// The number formats a tensor can have, and bf16 in software.
//
//   size_of(DType::bf16);        // 2 bytes
//   to_float(to_bf16(1.001f));   // 1: eight bits of it are kept
#pragma once

#include <bit>
#include <cstdint>
#include <string_view>

#include "base/host_device.h"

namespace brisk {

enum class DType : uint8_t { f32, bf16, i32 };

BRISK_HOST_DEVICE constexpr int64_t size_of(DType type) { return type == DType::bf16 ? 2 : 4; }
constexpr std::string_view dtype_name(DType type) {
  return type == DType::f32 ? "f32" : type == DType::bf16 ? "bf16" : "i32";
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

}  // namespace brisk
