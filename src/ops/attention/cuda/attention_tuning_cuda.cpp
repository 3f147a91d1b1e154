// Chooses the variant of attention: each that supports the operands is timed once per shape, and the fastest is stored
// in a file for later processes, as the algorithms of matrix products are. Small operands are not worth timing and take
// the usual variant.
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
#include "ops/attention/cuda/attention_entropy_cuda.h"
#include "ops/attention/cuda/attention_variants_cuda.h"
#include "ops/cuda/cuda_stream.h"
#include "ops/gemm/cuda/gemm_cublaslt_cuda.h"
#include "ops/gemm/cuda/gemm_tuning_cuda.h"

namespace brisk::cuda {

namespace {

using Variant = AttentionVariant;

constexpr int kKernels = 3;           // to be raised when the kernels change: what was timed before is forgotten
constexpr double kWorthTiming = 1e9;  // multiplications and additions of a forward pass

constexpr std::array kEveryVariant = {Variant::plain,        Variant::narrow,      Variant::by_tile,
                                      Variant::by_wide_tile, Variant::by_sequence, Variant::hopper,
                                      Variant::hopper_pair,  Variant::cudnn,       Variant::cudnn_unordered};
// In the order of their trials.
constexpr std::array kTried = {Variant::plain,       Variant::narrow, Variant::by_tile,     Variant::by_wide_tile,
                               Variant::by_sequence, Variant::hopper, Variant::hopper_pair, Variant::cudnn};

enum class Asked : uint8_t { fastest, own, cudnn };

Asked asked_for() {
  const std::string_view text = Runtime::current().environment("BRISK_CUDA_ATTENTION");
  if (text == "own") return Asked::own;
  if (text == "cudnn") return Asked::cudnn;
  if (!text.empty()) user_error("BRISK_CUDA_ATTENTION is \"{}\"; it can be \"own\" or \"cudnn\"", text);
  return Asked::fastest;
}

// Ragged batches have new sizes each time; neighbours use the same variant.
int64_t near_size(int64_t size) { return leading_bits(size, 3); }

TunedAlgorithms::Key choice_key(const AttentionForward& op, bool backward) {
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

TunedAlgorithms& timed_variants() {
  static const std::string of = fmt::format("{} attention {}", gpu_name(), kKernels);
  return tuned_algorithms(of, attention_library_version());
}

double work_of(const AttentionForward& op) {
  return 4.0 * static_cast<double>(op.q.rows) * static_cast<double>(op.longest_keys) *
         static_cast<double>(op.shape.heads * op.shape.head_width);
}

bool is_worth_a_plan(const AttentionForward& op, Variant usual) {
  if (asked_for() == Asked::own) return false;
  return usual == Variant::plain || may_suit_cudnn(op.shape.head_width, op.queries.longest);
}

// `run` runs a variant, or answers that it cannot. Trials write what the chosen variant then writes again.
template <typename Run>
void run_fastest(const AttentionForward& op, bool backward, Variant usual, const Run& run) {
  if (asked_for() == Asked::cudnn && run(Variant::cudnn)) return;
  if (op.q.type != DType::f32 && asked_for() != Asked::cudnn && work_of(op) >= kWorthTiming) {
    const TunedAlgorithms::Key key = choice_key(op, backward);
    const TunedAlgorithms::Algorithm* known = timed_variants().find(key);
    if (known != nullptr) {
      if (known->front() < kEveryVariant.size() && run(static_cast<Variant>(known->front()))) return;
    } else if (wants_timing() && !is_captured()) {
      Variant fastest = usual;
      float best = std::numeric_limits<float>::infinity();
      for (const Variant variant : kTried) {
        if (variant == Variant::plain && usual != Variant::plain) continue;
        if ((variant == Variant::cudnn && !is_worth_a_plan(op, usual)) || !run(variant)) continue;
        const float time = shortest_milliseconds([&] { run(variant); });
        if (time < best) {
          best = time;
          fastest = variant;
        }
      }
      timed_variants().add(key, {static_cast<uint64_t>(fastest)});
      if (run(fastest)) return;
    }
  }
  BRISK_CHECK(run(usual), "attention's usual variant, {}, does not support these operands", name_of(usual));
}

}  // namespace

std::span<const AttentionVariant> every_attention_variant() { return kEveryVariant; }

const char* name_of(AttentionVariant variant) {
  constexpr std::array kNames = {"plain",  "narrow",      "by tile", "by wide tile",   "by sequence",
                                 "hopper", "hopper pair", "cudnn",   "cudnn unordered"};
  return kNames[static_cast<size_t>(variant)];
}

void attention_forward(const AttentionForward& op) {
  if (op.entropy) return attention_forward_with_entropy(op);
  if (op.bias) return attention_forward_plain(op);
  run_fastest(op, false, usual_attention_forward(op), [&](Variant variant) { return attention_forward(op, variant); });
}

void attention_backward(const AttentionBackward& op) {
  if (op.dentropy) return attention_backward_with_entropy(op);
  if (op.forward.bias) return attention_backward_plain(op);
  run_fastest(op.forward, true, usual_attention_backward(op),
              [&](Variant variant) { return attention_backward(op, variant); });
}

}  // namespace brisk::cuda
