// IEEE half precision (fp16) in software: for files, and for what checks a GPU's.
//
//   const float x = half_to_float(0x3C00);          // 1
//   const uint16_t bits = float_to_half(0.1f);      // rounded to nearest even; infinite from 65520 on
#pragma once

#include <bit>
#include <cstdint>

#include "base/host_device.h"

namespace brisk {

BRISK_HOST_DEVICE constexpr float half_to_float(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
  const uint32_t exponent = (half >> 10) & 0x1Fu, fraction = half & 0x3FFu;
  if (exponent == 0x1F) return std::bit_cast<float>(sign | 0x7F800000u | (fraction << 13));
  if (exponent != 0) return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (fraction << 13));
  const float tiny = static_cast<float>(fraction) * 0x1p-24f;  // zero and subnormal numbers
  return sign != 0 ? -tiny : tiny;
}

BRISK_HOST_DEVICE constexpr uint16_t float_to_half(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint16_t sign = static_cast<uint16_t>((bits >> 16) & 0x8000u);
  const uint32_t size = bits & 0x7FFFFFFFu;
  if (size > 0x7F800000u) return static_cast<uint16_t>(sign | 0x7E00u);  // NaN stays NaN
  if (size >= 0x477FF000u) return static_cast<uint16_t>(sign | 0x7C00u);
  const uint32_t shift = size >= 0x38800000u ? 13 : 126 - (size >> 23);  // bits that fall away; more where subnormal
  if (shift > 24) return sign;
  const bool subnormal = size < 0x38800000u;
  const uint32_t number = subnormal ? (size & 0x7FFFFFu) | 0x800000u : size - (112u << 23);
  uint32_t half = number >> shift;
  const uint32_t rest = number & ((1u << shift) - 1), middle = 1u << (shift - 1);
  if (rest > middle || (rest == middle && (half & 1u) != 0)) ++half;
  return static_cast<uint16_t>(sign | half);
}

}  // namespace brisk
