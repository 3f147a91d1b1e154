#include "train/precision.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "base/isa.h"
#include "ops/linear.h"
#include "tensor/device.h"

namespace brisk {

namespace {

// Seconds of the forward product of the job's widest layer; the best of three, so that a busy moment does not decide.
// Above 2048 wide the ratio of the two formats stays the same, and a start should not take seconds.
double time_product(const DecoderConfig& model, int64_t rows, DType type) {
  const int64_t in = std::min<int64_t>(model.d_model, 2048), out = std::min<int64_t>(model.d_ff, 2048);
  Device& device = cpu_device();
  Buffer x(device, rows * in * size_of(type)), w(device, in * out * size_of(type)),
      y(device, rows * out * size_of(type));
  LinearForward op;
  op.x = matrix(x.data(), type, rows, in);
  op.weight = matrix(w.data(), type, out, in);
  op.y = matrix(y.data(), type, rows, out);
  double best = 1e9;
  for (int trial = 0; trial < 4; ++trial) {
    const auto start = std::chrono::steady_clock::now();
    cpu::linear_forward(op);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (trial > 0) best = std::min(best, seconds);  // the first one touches the memory
  }
  return best;
}

}  // namespace

PrecisionChoice choose_precision(const std::string& asked, const DecoderConfig& model, int64_t rows) {
  const bool instructions = has_bf16_instructions(active_isa());
  const std::string isa(isa_name(active_isa()));
  if (asked == "fp32") return {DType::f32, "fp32, as the job asks", false};
  if (asked == "auto" && !instructions)
    return {DType::f32, fmt::format("fp32: {} has no bf16 instructions", isa), false};

  const int64_t sample = std::min<int64_t>(rows, 512);
  const double full = time_product(model, sample, DType::f32);
  // Without the instructions a small sample is enough to tell the user the cost.
  const double half =
      time_product(model, instructions ? sample : std::min<int64_t>(sample, 32), DType::bf16) *
      (instructions ? 1.0 : static_cast<double>(sample) / static_cast<double>(std::min<int64_t>(sample, 32)));
  const double ratio = full / half;
  if (asked == "auto") {
    if (ratio > 1.1)
      return {DType::bf16, fmt::format("bf16: products measured {:.1f}x as fast as fp32 ({})", ratio, isa), false};
    return {DType::f32, fmt::format("fp32: bf16 products measured only {:.2f}x as fast ({})", ratio, isa), false};
  }
  if (asked == "bf16") {
    if (ratio >= 1)
      return {DType::bf16,
              fmt::format("bf16, as the job asks: products measured {:.1f}x as fast as fp32 ({})", ratio, isa), false};
    return {DType::bf16,
            fmt::format(
                "precision bf16 makes this run slower: its products measured {:.1f}x the time of fp32, since {} has no "
                "fast bf16; use \"precision\": \"fp32\" or \"auto\"",
                1 / ratio, isa),
            true};
  }
  // fp16 has no instructions for products with fp32 sums on any CPU brisk knows; emulating it would be slower still.
  const bool better = ratio > 1.1 && instructions;
  return {
      better ? DType::bf16 : DType::f32,
      fmt::format("precision fp16 has no product instructions on this CPU and would only cost time; running {} instead "
                  "(bf16 products measured {:.2f}x as fast as fp32 here)",
                  better ? "bf16" : "fp32", ratio),
      true};
}

}  // namespace brisk
