// What was decided by timing, saved with every checkpoint so that a resumed run does not decide otherwise.
//
//   const Choices choices{.compute_type = DType::bf16, .micro_batch_tokens = 2048, .isa = "amx", .threads = 2};
//   state.choices_json = choices_to_json(choices);
//   Choices again = choices_from_json(state.choices_json, "runs/bible");      // of a resumed run
#pragma once

#include <cstdint>
#include <string>

#include "infer/precision.h"
#include "tensor/dtype.h"

namespace brisk {

struct Choices {
  DType compute_type = DType::f32;
  int64_t micro_batch_tokens = 0;
  // Where it was made. Elsewhere the curve goes on, but not to the bit.
  std::string isa;
  int64_t threads = 0;
  ProductFormat products = ProductFormat::own;
};

std::string choices_to_json(const Choices& choices);
Choices choices_from_json(const std::string& text, const std::string& source);

}  // namespace brisk
