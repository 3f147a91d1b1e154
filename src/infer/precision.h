// Which number format products run in, chosen by measuring this machine on this job's shapes.
//
//   const PrecisionChoice choice = choose_precision("auto", model_widths(config));
//   say("precision: {}", choice.reason);                // "bf16: products measured 2.9x as fast as fp32 (amx)"
#pragma once

#include <string>

#include "models/model_config.h"
#include "ops/gemm/gemm.h"
#include "tensor/device.h"
#include "tensor/dtype.h"

namespace brisk {

struct PrecisionChoice {
  DType compute_type = DType::f32;
  std::string reason;  // for the user: what was measured or asked for
  bool costs = false;  // what was asked for is slower than fp32 here, or is not what runs: a warning
  GemmFormat products = GemmFormat::own;
};

std::string precision_name(DType compute_type, GemmFormat products);  // as a job says it: "bf16", "tf32"
Arithmetic arithmetic_of(DType compute_type, GemmFormat products);    // of most products

// `asked` is training.precision: auto, fp32, tf32, bf16, fp16 or fp8. auto measures and never chooses bf16 without bf16
// instructions. On a GPU auto is bf16: every GPU that brisk runs on multiplies it many times as fast. UserError where
// it is for other devices: check_precision() alone says so, and measures nothing.
PrecisionChoice choose_precision(const std::string& asked, const ModelWidths& widths, const Device& device);
void check_precision(const std::string& asked, const Device& device);
// Whether the weights of the layers can do without fp32 masters there.
void check_master_weights(bool master_weights, const std::string& precision, const Device& device);

}  // namespace brisk
