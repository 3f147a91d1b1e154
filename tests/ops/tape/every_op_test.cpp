// Every op of ops/tape/tape_ops.h alone between a table of numbers and a loss: its gradients are the slopes of the loss,
// and every instruction set computes what the reference does.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ops/optimizer/parameters.h"
#include "ops/tape/tape_ops.h"
#include "support/numeric.h"
#include "tensor/program.h"

namespace brisk {
namespace {

using testing::for_each_isa;
using testing::Ragged;

constexpr int64_t kVocabulary = 7, kWidth = 12, kHeads = 2, kHeadWidth = 6;

// What a case is recorded with: x is [N, kWidth] of row set 0. Row set 1 has two rows of each sequence of set 0, row set 2 a
// grid of 6 x 6 rows for each, row set 3 a quarter of that, and row set 4 one row.
class Recorder {
 public:
  Recorder(Tape& tape, ParameterStore& store) : tape(tape), x(embedding(tape, 0, weight(store, "x"))), store_(store) {}

  Parameter* parameter(const std::string& name, int64_t rows = kVocabulary, int64_t cols = kWidth) {
    return weight(store_, name, rows, cols);
  }
  // That no matrix product reads: f32 in every precision.
  Parameter* table(const std::string& name, int64_t rows, int64_t cols) {
    return weight(store_, name, rows, cols, false);
  }
  Value numbers(const std::string& name, int set, int64_t cols = kWidth) {
    return embedding(tape, set, parameter(name, kVocabulary, cols));
  }

  Tape& tape;
  const Value x;

 private:
  static Parameter* weight(ParameterStore& store, const std::string& name, int64_t rows = kVocabulary,
                           int64_t cols = kWidth, bool multiplies = true) {
    return store.add({.name = name + ".weight",
                      .rows = rows,
                      .cols = cols,
                      .multiplies = multiplies && rows > 1,
                      .initial = {Initial::Kind::normal, 0.7}});
  }
  ParameterStore& store_;
};

struct OpCase {
  std::string name;
  std::function<Value(Recorder&)> record;
};

// Narrow heads of their own keys, q, k and v of one value.
Value narrow_attention(Recorder& r, int64_t heads, int64_t width, bool causal) {
  return self_attention(r.tape, r.numbers("qkv", 0, 3 * heads * width), {heads, heads, width, 0.6f, causal}, 0);
}
Value attention_with_entropy(Recorder& r, int64_t heads, int64_t width, bool causal) {
  const auto [y, entropy] = self_attention_with_entropy(r.tape, r.numbers("qkv", 0, 3 * heads * width),
                                                        {heads, heads, width, 0.6f, causal}, 0);
  return concatenate(r.tape, {y, entropy});
}

// Two that read one bias, as the layers of a model do.
Value attention_with_bias(Recorder& r, bool causal) {
  const AttentionShape shape{kHeads, kHeads, kHeadWidth, 0.4f, causal};
  const Value bias = relative_bias(r.tape, r.table("relative", 8, kHeads), {.distance = 5, .causal = causal}, 16);
  const Value first = self_attention(r.tape, r.numbers("qkv", 0, 3 * kWidth), shape, 0, bias);
  return add(r.tape, first, self_attention(r.tape, r.numbers("other", 0, 3 * kWidth), shape, 0, bias));
}

// Two that read one bias, as the layers of a stage do not, and those of a BEiT may.
Value attention_in_windows(Recorder& r, const GridWindows& windows, int64_t heads, int64_t width) {
  const Value bias = window_bias(r.tape, r.table("places", window_bias_rows(windows), heads), windows);
  const GridAttentionShape shape{.windows = windows, .heads = heads, .head_width = width};
  const Value first = grid_attention(r.tape, r.numbers("qkv", 2, 3 * heads * width), shape, bias, 0);
  return add(r.tape, first, grid_attention(r.tape, r.numbers("other", 2, 3 * heads * width), shape, bias, 0));
}

AttentionShape attention_shape(int64_t kv_heads, bool causal) { return {kHeads, kv_heads, kHeadWidth, 0.4f, causal}; }

const std::vector<OpCase>& every_op() {
  static const std::vector<OpCase> cases = {
      {"embedding",
       [](Recorder& r) {
         return embedding(
             r.tape, 0, r.parameter("table"),
             {.positions = r.parameter("positions", 10), .position_offset = 2, .types = r.parameter("types", 2)});
       }},
      {"scaled_embedding",
       [](Recorder& r) {
         return embedding(r.tape, 0, r.parameter("table"), {.positions = r.parameter("positions", 8), .scale = 1.7});
       }},
      {"linear",
       [](Recorder& r) {
         return linear(r.tape, r.x, r.parameter("weight", 9),
                       {.bias = r.parameter("bias", 1, 9), .activation = Activation::gelu_erf});
       }},
      {"linear_of_a_part",
       [](Recorder& r) {
         return linear(r.tape, r.x, r.parameter("weight", 20),
                       {.bias = r.parameter("bias", 1, 20), .residual = r.x, .first_row = 5, .rows = kWidth});
       }},
      {"linear_of_a_part_with_a_bias_of_its_own",
       [](Recorder& r) {
         return linear(r.tape, r.x, r.parameter("weight", 20),
                       {.bias = r.parameter("bias", 1, 7), .first_row = 5, .rows = 7});
       }},
      {"grouped_linear",
       [](Recorder& r) {
         return grouped_linear(r.tape, r.numbers("wide", 0, 16), r.table("weight", 48, 4), r.parameter("bias", 1, 48),
                               {.groups = 4, .parts = 3});
       }},
      {"grouped_linear_of_tiles",
       [](Recorder& r) {
         return grouped_linear(r.tape, r.numbers("wide", 0, 16), r.table("weight", 16, 4), r.parameter("bias", 1, 16),
                               {.groups = 4, .matrix_cols = 4, .tile_cols = 2});
       }},
      {"grouped_linear_of_odd_groups",
       [](Recorder& r) {
         return grouped_linear(r.tape, r.x, r.table("weight", 20, 6), nullptr, {.groups = 2, .parts = 2});
       }},
      {"interpolate",
       [](Recorder& r) { return interpolate(r.tape, r.x, r.numbers("target", 0), r.numbers("share", 0, 4)); }},
      {"interpolate_towards_itself", [](Recorder& r) { return interpolate(r.tape, r.x, r.numbers("target", 0), r.x); }},
      {"layer_norm",
       [](Recorder& r) {
         return norm(r.tape, r.x, NormKind::layer, r.parameter("gain", 1), r.parameter("bias", 1), 1e-5);
       }},
      {"rms_norm", [](Recorder& r) { return norm(r.tape, r.x, NormKind::rms, r.parameter("gain", 1), nullptr, 1e-5); }},
      {"gated", [](Recorder& r) { return gated(r.tape, r.x, Activation::silu); }},
      {"pointwise", [](Recorder& r) { return pointwise(r.tape, r.x, Activation::tanh, 1.5); }},
      {"rotary", [](Recorder& r) { return rotary(r.tape, r.x, kHeadWidth, kHeadWidth, 50); }},
      {"self_attention",
       [](Recorder& r) {
         const int64_t cols = (kHeads + 2) * kHeadWidth;
         return self_attention(r.tape, r.numbers("qkv", 0, cols), attention_shape(1, true), 0);
       }},
      {"self_attention_of_narrow_heads", [](Recorder& r) { return narrow_attention(r, 9, 2, true); }},
      {"self_attention_of_narrow_heads_without_a_mask", [](Recorder& r) { return narrow_attention(r, 3, 3, false); }},
      {"self_attention_with_relative_bias", [](Recorder& r) { return attention_with_bias(r, true); }},
      {"self_attention_with_relative_bias_without_a_mask", [](Recorder& r) { return attention_with_bias(r, false); }},
      {"self_attention_with_entropy", [](Recorder& r) { return attention_with_entropy(r, 2, 8, true); }},
      {"self_attention_with_entropy_without_a_mask",
       [](Recorder& r) { return attention_with_entropy(r, 3, 2, false); }},
      {"self_attention_with_entropy_of_wide_heads", [](Recorder& r) { return attention_with_entropy(r, 2, 6, true); }},
      {"cross_attention",
       [](Recorder& r) {
         return cross_attention(r.tape, r.numbers("q", 1), r.numbers("kv", 0, 2 * kWidth),
                                attention_shape(kHeads, false), 0);
       }},
      {"grid_attention_in_windows",
       [](Recorder& r) { return attention_in_windows(r, GridWindows::of(6, 6, 3, 0), 2, 4); }},
      {"grid_attention_in_shifted_windows",
       [](Recorder& r) { return attention_in_windows(r, GridWindows::of(6, 6, 3, 2), 1, 5); }},
      {"grid_attention_of_oblong_windows",
       [](Recorder& r) {
         return attention_in_windows(r, {.height = 9, .width = 4, .window_height = 9, .window_width = 2}, 1, 4);
       }},
      {"grid_attention_with_a_class_row",
       [](Recorder& r) { return attention_in_windows(r, GridWindows::whole(5, 7, true), 1, 4); }},
      {"grid_attention_without_a_bias",
       [](Recorder& r) {
         return grid_attention(r.tape, r.numbers("qkv", 2, 24), {GridWindows::of(6, 6, 2, 1), 2, 4}, {}, 0);
       }},
      {"merge_grid", [](Recorder& r) { return merge_grid(r.tape, r.numbers("h", 2, 3), 3, 6, 6); }},
      {"mean_rows", [](Recorder& r) { return mean_rows(r.tape, r.x, 4, 0); }},
      {"mean_rows_without_the_first", [](Recorder& r) { return mean_rows(r.tape, r.x, 4, 1); }},
      {"add", [](Recorder& r) { return add(r.tape, r.x, r.numbers("y", 0)); }},
      {"add_to_groups", [](Recorder& r) { return add(r.tape, r.x, r.numbers("y", 0, 3)); }},
      {"add_a_parameter", [](Recorder& r) { return add(r.tape, r.x, r.parameter("vector", 1)); }},
      {"multiply", [](Recorder& r) { return multiply(r.tape, r.x, r.numbers("y", 0)); }},
      {"multiply_by_itself", [](Recorder& r) { return multiply(r.tape, r.x, r.x); }},
      {"multiply_rows", [](Recorder& r) { return multiply(r.tape, r.x, r.numbers("y", 0, 1)); }},
      {"multiply_by_a_parameter", [](Recorder& r) { return multiply(r.tape, r.x, r.parameter("vector", 1)); }},
      {"sum_columns", [](Recorder& r) { return sum_columns(r.tape, r.x, 4); }},
      {"columns", [](Recorder& r) { return columns(r.tape, r.x, 3, 5); }},
      {"first_columns", [](Recorder& r) { return columns(r.tape, r.x, 0, 1); }},
      {"overlapping_columns",
       [](Recorder& r) { return add(r.tape, columns(r.tape, r.x, 0, 7), columns(r.tape, r.x, 4, 7)); }},
      {"convert",
       [](Recorder& r) { return convert(r.tape, linear(r.tape, r.x, r.parameter("weight", 9)), DType::f32); }},
      {"concatenate",
       [](Recorder& r) {
         return concatenate(r.tape, {r.x, r.numbers("y", 0, 5), r.numbers("z", 0, 1)});
       }},
      {"concatenate_with_itself",
       [](Recorder& r) {
         return concatenate(r.tape, {r.x, r.numbers("y", 0, 3), r.x});
       }},
      {"softmax", [](Recorder& r) { return softmax(r.tape, r.x); }},
      {"softmax_of_groups", [](Recorder& r) { return softmax(r.tape, r.x, 3); }},
      {"log_softmax", [](Recorder& r) { return log_softmax(r.tape, r.x, 2); }},
      {"pick_rows", [](Recorder& r) { return pick_rows(r.tape, r.x, 1); }},
      {"linear_cross_entropy", [](Recorder& r) { return r.x; }},
  };
  return cases;
}

class OneOp {
 public:
  OneOp(const OpCase& op, Backend backend)
      : tape_({.rows = {{32, 8, 16}, {16, 8, 2}, {180, 5, 36}, {45, 5, 9}, {5, 5, 1}}}) {
    Recorder recorder(tape_, store_);
    const Value y = op.record(recorder);
    loss_ = linear_cross_entropy(tape_, y, recorder.parameter("head", kVocabulary, tape_.spec(y).cols),
                                 {.bias = recorder.parameter("head_bias", 1, kVocabulary)});
    program_ = std::make_unique<Program>(tape_, ProgramOptions{.backend = backend});
    store_.allocate(cpu_device(), program_->completion_order(), DType::f32, ParameterStore::Purpose::training);
    store_.initialise(5);
    program_->allocate(cpu_device());
    fill(0, rows_.view());
    fill(1, picked_.view());
    fill(2, grid_.view());
    fill(3, quarter_.view());
    fill(4, each_.view());
    batch_.sets[1].source = source_.data();
    batch_.loss_scale = 0.1f;
  }

  // The loss; the gradients are in the store afterwards.
  double run() {
    Ledger ledger;
    program_->forward(batch_, ledger);
    program_->backward(batch_, ledger);
    double sum = 0;
    const Tensor losses = program_->value(loss_.row_losses, batch_);
    for (int64_t r = 0; r < losses.rows; ++r) sum += losses.f32()[r];
    return sum * batch_.loss_scale;
  }
  std::vector<float> gradients() const { return numbers_of(store_.flat_gradient()); }
  static std::vector<float> numbers_of(const Tensor& t) { return {t.f32(), t.f32() + t.rows * t.cols}; }
  ParameterStore& parameters() { return store_; }

 private:
  void fill(size_t set, const RowSet& rows) {
    for (int64_t r = 0; r < rows.rows; ++r) {
      tokens_[set].push_back(static_cast<int32_t>((5 * r + 1) % kVocabulary));
      targets_[set].push_back(r % 5 == 3 ? -1 : static_cast<int32_t>(3 * r % kVocabulary));
    }
    batch_.sets[set].rows = rows;
    batch_.sets[set].tokens = tokens_[set].data();
    batch_.sets[set].targets = targets_[set].data();
    if (set == 0) batch_.sets[set].types = types_.data();
  }

  const Ragged rows_{{5, 1, 7, 3}}, picked_{{2, 2, 2, 2}}, grid_{{36, 36, 36, 36}}, quarter_{{9, 9, 9, 9}},
      each_{{1, 1, 1, 1}};
  const std::vector<int32_t> source_ = {0, 3, 5, 5, 6, 12, 14, 13};  // of each sequence two rows, of one the same twice
  const std::vector<int32_t> types_ = {0, 1, 1, 0, 1, 0, 0, 1, 1, 1, 0, 1, 0, 0, 1, 1};
  std::vector<int32_t> tokens_[5], targets_[5];
  ParameterStore store_;
  Tape tape_;
  LossValues loss_;
  std::unique_ptr<Program> program_;
  DeviceBatch batch_{.sets = std::vector<DeviceBatch::Set>(5)};
};

class EveryOp : public ::testing::TestWithParam<OpCase> {};

TEST_P(EveryOp, GradientsAreTheSlopesOfTheLoss) {
  OneOp model(GetParam(), Backend::reference);
  model.run();
  const std::vector<float> gradients = model.gradients();
  for (const auto& parameter : model.parameters().all()) {
    double gap = 0, size = 0;
    for (int64_t entry = 0; entry < parameter->count(); ++entry) {
      float& number = parameter->master.f32()[entry];
      const float before = number;
      const auto loss_at = [&](float shift) {
        number = before + shift;
        const double loss = model.run();
        number = before;
        return loss;
      };
      // The five-point rule: its error falls with the fourth power, so the shift can be large against fp32's rounding.
      const float h = 0.02f;
      const double slope = (8 * (loss_at(h) - loss_at(-h)) - (loss_at(2 * h) - loss_at(-2 * h))) / (12.0 * h);
      const double gradient = gradients[static_cast<size_t>(parameter->offset + entry)];
      gap += (slope - gradient) * (slope - gradient);
      size += slope * slope;
    }
    EXPECT_LE(std::sqrt(gap), 1e-3 * std::sqrt(size) + 2e-5) << parameter->spec.name;
  }
}

TEST_P(EveryOp, IsTheReferencesOnEveryInstructionSet) {
  OneOp reference(GetParam(), Backend::reference);
  const double loss = reference.run();
  const std::vector<float> expected = reference.gradients();
  for_each_isa([&](Isa) {
    OneOp model(GetParam(), Backend::cpu);
    EXPECT_NEAR(model.run(), loss, 1e-6 * loss);
    const std::vector<float> gradients = model.gradients();
    ASSERT_EQ(gradients.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) ASSERT_NEAR(gradients[i], expected[i], 2e-6) << i;
  });
}

INSTANTIATE_TEST_SUITE_P(Ops, EveryOp, ::testing::ValuesIn(every_op()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace brisk
