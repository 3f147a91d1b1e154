// What was decided by timing, saved with every checkpoint so that a resumed run does not decide otherwise.
//
//   const TunedSettings tuned{.compute_type = DType::bf16, .micro_batch_tokens = 2048, .isa = "amx", .threads = 2};
//   state.tuned_settings_json = tuned_settings_to_json(tuned);
//   TunedSettings again = tuned_settings_from_json(state.tuned_settings_json, "runs/bible");      // of a resumed run
#pragma once

#include <cstdint>
#include <string>

#include "infer/precision.h"
#include "tensor/dtype.h"

namespace brisk {

struct TunedSettings {
  DType compute_type = DType::f32;
  int64_t micro_batch_tokens = 0;
  // Where it was made. Elsewhere the curve goes on, but not to the bit.
  std::string isa;
  int64_t threads = 0;
  GemmFormat products = GemmFormat::own;
};

std::string tuned_settings_to_json(const TunedSettings& tuned);
TunedSettings tuned_settings_from_json(const std::string& text, const std::string& source);

}  // namespace brisk
