// Weights that are not finite (NaN, infinity): a model with one of them says nothing, or nonsense, without a complaint.
//
//   check_finite("model.safetensors", entries);      // on all threads
//   // UserError: "model.safetensors: 'wte.weight' holds 2 numbers that are not finite, the first nan at index 17, ..."
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "hub/formats/safetensors.h"

namespace brisk {

enum class NonFinite : uint8_t { refuse, allow };

// Tensors of f32, f16 and bf16; of other types nothing is said. `path` is named in the error.
void check_finite(const std::string& path, std::span<const SafetensorsEntry* const> tensors);

}  // namespace brisk
