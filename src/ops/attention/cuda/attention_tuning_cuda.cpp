// Which way attention goes: the fastest of those that can, each timed once per shape, and kept from process to process
// as products' algorithms are. What takes no time is not worth timing, and goes the usual way.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <string_view>

#include "base/error.h"
#include "base/rounding.h"
#include "base/runtime.h"
#include "ops/attention/attention_cudnn_limits.h"
#include "ops/attention/cuda/attention_cudnn_cuda.h"
#include "ops/attention/cuda/attention_variants_cuda.h"
#include "ops/cuda/cuda_stream.h"
#include "ops/gemm/cuda/gemm_cublaslt_cuda.h"
#include "ops/gemm/cuda/gemm_tuning_cuda.h"

namespace brisk::cuda {

namespace {

using Way = AttentionWay;

constexpr int kKernels = 2;           // to be raised when the kernels change: what was timed before is forgotten
constexpr double kWorthTiming = 1e9;  // multiplications and additions of a forward pass

constexpr std::array kEveryWay = {Way::plain,  Way::by_tile,     Way::by_wide_tile, Way::by_sequence,
                                  Way::hopper, Way::hopper_pair, Way::cudnn,        Way::cudnn_unordered};
// In the order of their trials.
constexpr std::array kTried = {Way::plain,  Way::by_tile,     Way::by_wide_tile, Way::by_sequence,
                               Way::hopper, Way::hopper_pair, Way::cudnn};

enum class Asked : uint8_t { fastest, own, cudnn };

Asked asked_for() {
  const std::string_view text = Runtime::current().environment("BRISK_CUDA_ATTENTION");
  if (text == "own") return Asked::own;
  if (text == "cudnn") return Asked::cudnn;
  if (!text.empty()) user_error("BRISK_CUDA_ATTENTION is \"{}\"; it can be \"own\" or \"cudnn\"", text);
  return Asked::fastest;
}

// Ragged batches have new sizes each time; neighbours go the same way.
int64_t near_size(int64_t size) { return leading_bits(size, 3); }

ProductChoices::Key choice_key(const AttentionForward& op, bool backward) {
  const bool is_self = op.k_begin == op.queries.starts;
  return {backward,
          near_size(op.q.rows),
          near_size(op.queries.sequences),
          op.queries.even,
          near_size(op.queries.longest),
          near_size(op.longest_keys),
          op.shape.heads,
          op.shape.kv_heads,
          op.shape.head_width,
          op.shape.causal,
          op.dropout.active(),
          is_self,
          op.log_sum_exp.data != nullptr,
          asked_for() == Asked::own,
          static_cast<int64_t>(op.q.type)};
}

ProductChoices& timed_ways() {
  static const std::string of = fmt::format("{} attention {}", gpu_name(), kKernels);
  return product_choices(of, attention_library_version());
}

double work_of(const AttentionForward& op) {
  return 4.0 * static_cast<double>(op.q.rows) * static_cast<double>(op.longest_keys) *
         static_cast<double>(op.shape.heads * op.shape.head_width);
}

bool is_worth_a_plan(const AttentionForward& op, Way usual) {
  if (asked_for() == Asked::own) return false;
  return usual == Way::plain || may_suit_cudnn(op.shape.head_width, op.queries.longest);
}

// `run` goes a way, or answers that it cannot. Trials write what the chosen way then writes again.
template <typename Run>
void run_fastest(const AttentionForward& op, bool backward, Way usual, const Run& run) {
  if (asked_for() == Asked::cudnn && run(Way::cudnn)) return;
  if (op.q.type != DType::f32 && asked_for() != Asked::cudnn && work_of(op) >= kWorthTiming) {
    const ProductChoices::Key key = choice_key(op, backward);
    const ProductChoices::Algorithm* known = timed_ways().find(key);
    if (known != nullptr) {
      if (known->front() < kEveryWay.size() && run(static_cast<Way>(known->front()))) return;
    } else if (wants_timing() && !is_captured()) {
      Way fastest = usual;
      float best = std::numeric_limits<float>::infinity();
      for (const Way way : kTried) {
        if (way == Way::plain && usual != Way::plain) continue;
        if ((way == Way::cudnn && !is_worth_a_plan(op, usual)) || !run(way)) continue;
        const float time = shortest_milliseconds([&] { run(way); });
        if (time < best) {
          best = time;
          fastest = way;
        }
      }
      timed_ways().add(key, {static_cast<uint64_t>(fastest)});
      if (run(fastest)) return;
    }
  }
  BRISK_CHECK(run(usual), "attention's usual way, {}, does not fit", name_of(usual));
}

}  // namespace

std::span<const AttentionWay> every_attention_way() { return kEveryWay; }

const char* name_of(AttentionWay way) {
  constexpr std::array kNames = {"plain",  "by tile",     "by wide tile", "by sequence",
                                 "hopper", "hopper pair", "cudnn",        "cudnn unordered"};
  return kNames[static_cast<size_t>(way)];
}

void attention_forward(const AttentionForward& op) {
  run_fastest(op, false, usual_attention_forward(op), [&](Way way) { return attention_forward(op, way); });
}

void attention_backward(const AttentionBackward& op) {
  run_fastest(op.forward, true, usual_attention_backward(op), [&](Way way) { return attention_backward(op, way); });
}

}  // namespace brisk::cuda
