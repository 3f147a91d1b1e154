#include "infer/precision.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>

#include "base/error.h"
#include "base/machine/isa.h"
#include "base/runtime.h"
#include "ops/linear/linear.h"
#include "tensor/device.h"

namespace brisk {

namespace {

// Of this thread alone: what others do to the machine does not count.
double thread_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// The forward product of the job's widest layer, and the least time one took.
// Above 2048 wide the ratio of the two formats stays the same, and a start should not take seconds.
class TimedProduct {
 public:
  TimedProduct(int64_t rows, int64_t in, int64_t out, DType type)
      : x_(cpu_device(), rows * in * size_of(type)),
        w_(cpu_device(), in * out * size_of(type)),
        y_(cpu_device(), rows * out * size_of(type)) {
    op_.x = matrix(x_.data(), type, rows, in);
    op_.weight = matrix(w_.data(), type, out, in);
    op_.y = matrix(y_.data(), type, rows, out);
    cpu::linear_forward(op_);  // touches the memory
  }

  void run() {
    const double start = thread_seconds();
    cpu::linear_forward(op_);
    const double seconds = thread_seconds() - start;
    best_ = std::min(best_, seconds);
    spent_ += seconds;
  }
  double best() const { return best_; }
  double spent() const { return spent_; }

 private:
  Buffer x_, w_, y_;
  LinearForward op_;
  double best_ = 1e9, spent_ = 0;
};

// How many times as fast bf16 is. On one thread, in its own time, one product of each in turn, the least of many: wall
// time on all threads chose either format on a busy machine (0.14x to 2.0x in eight starts of one job).
double measure_ratio(const ModelWidths& widths, bool instructions) {
  constexpr double kSeconds = 5e-3;  // in each
  constexpr int kFewest = 5, kMost = 1000;
  const ThreadsScope one_thread(1);
  const int64_t in = std::min<int64_t>(widths.d_model, 2048), out = std::min<int64_t>(widths.d_ff, 2048);
  const int64_t rows = std::clamp<int64_t>((int64_t{1} << 24) / (in * out), 256, 4096);
  const int64_t half_rows = instructions ? rows : 32;  // emulated, few are enough to tell the user the cost
  TimedProduct full(rows, in, out, DType::f32), half(half_rows, in, out, DType::bf16);
  for (int i = 0; i < kMost && (i < kFewest || std::min(full.spent(), half.spent()) < kSeconds); ++i) {
    full.run();
    half.run();
  }
  return full.best() / static_cast<double>(rows) / (half.best() / static_cast<double>(half_rows));
}

}  // namespace

std::string precision_name(DType compute_type, GemmFormat products) {
  if (products == GemmFormat::tf32) return "tf32";
  if (products == GemmFormat::fp8) return "fp8";
  return compute_type == DType::bf16 ? "bf16" : compute_type == DType::f16 ? "fp16" : "fp32";
}

Arithmetic arithmetic_of(DType compute_type, GemmFormat products) {
  if (products == GemmFormat::tf32) return Arithmetic::tf32;
  if (compute_type == DType::f16) return Arithmetic::f16;
  return compute_type == DType::bf16 ? Arithmetic::bf16 : Arithmetic::f32;
}

void check_precision(const std::string& asked, const Device& device) {
  constexpr int kLeastOfFp8 = 89;
  if (!device.is_cuda() && (asked == "tf32" || asked == "fp8")) {
    user_error(
        "precision {}: it needs the tensor cores of an NVIDIA GPU, but the device is the CPU; use fp32, bf16 or "
        "auto, or \"cuda\" as the device",
        asked);
  }
  if (device.is_cuda() && asked == "fp8" && device.compute_capability() < kLeastOfFp8) {
    user_error(
        "precision fp8: it takes a GPU of compute capability 8.9 or newer (Ada, Hopper), and this one has {}.{}; use "
        "bf16",
        device.compute_capability() / 10, device.compute_capability() % 10);
  }
}

void check_master_weights(bool master_weights, const std::string& precision, const Device& device) {
  if (master_weights) return;
  if (!device.is_cuda()) {
    user_error(
        "weights without fp32 masters (training.master_weights false) need an NVIDIA GPU; set master_weights to true, "
        "or use \"cuda\" as the device");
  }
  if (precision != "auto" && precision != "bf16" && precision != "fp8") {
    user_error(
        "weights without fp32 masters (training.master_weights false) are kept in bf16, and the precision is {}; use "
        "bf16 or fp8",
        precision);
  }
}

PrecisionChoice choose_precision(const std::string& asked, const ModelWidths& widths, const Device& device) {
  check_precision(asked, device);
  if (device.is_cuda()) {
    if (asked == "fp32") return {DType::f32, "fp32, as the job asks", false};
    if (asked == "tf32") return {DType::f32, "tf32, as the job asks", false, GemmFormat::tf32};
    if (asked == "auto") return {DType::bf16, "bf16, by the GPU's tensor cores", false};
    if (asked == "fp8")
      return {DType::bf16, "fp8 in linear layers, as the job asks; bf16 elsewhere", false, GemmFormat::fp8};
    if (asked == "bf16") return {DType::bf16, "bf16, as the job asks", false};
    BRISK_CHECK(asked == "fp16", "precision {}", asked);
    return {DType::f16, "fp16 with a scaled loss, as the job asks", false};
  }
  const bool instructions = has_bf16_instructions(active_isa());
  const std::string isa(isa_name(active_isa()));
  if (asked == "fp32") return {DType::f32, "fp32, as the job asks", false};
  if (asked == "auto" && !instructions)
    return {DType::f32, fmt::format("fp32: {} has no bf16 instructions", isa), false};

  const double ratio = measure_ratio(widths, instructions);
  if (asked == "auto") {
    if (ratio > 1.1)
      return {DType::bf16, fmt::format("bf16: matrix products measured {:.1f}x as fast as fp32 ({})", ratio, isa),
              false};
    return {DType::f32, fmt::format("fp32: bf16 matrix products measured only {:.2f}x as fast ({})", ratio, isa),
            false};
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
      fmt::format("precision fp16 has no fast matrix instructions on this CPU and would be slower; running {} instead "
                  "(bf16 matrix products measured {:.2f}x as fast as fp32 here)",
                  better ? "bf16" : "fp32", ratio),
      true};
}

}  // namespace brisk
