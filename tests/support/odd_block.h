// A small language model with a block that no fused op computes: queries, keys and values are read by attention, by
// attentions of single heads, by a gate that looks at how sharp attention is, and by every op that can only overwrite its
// gradient.
//
//   OddModel model(Backend::reference, cpu_device());
//   const double loss = model.run();                             // forward and backward of a fixed ragged batch
//   const std::vector<float> gradients = model.gradients();      // of all parameters
#pragma once

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

namespace brisk::testing {

class OddModel {
 public:
  static constexpr int64_t kVocabulary = 11, kWidth = 16, kHeads = 2, kHeadWidth = 8;

  OddModel(Backend backend, Device& device, DType type = DType::f32, int64_t checkpoint_every = 0)
      : device_(device), tape_({.activation_type = type, .rows = {{32, 8, 16}}}) {
    table_ = weight("table", kVocabulary, kWidth);
    const Value h = embedding(tape_, 0, table_);
    Value out = block(h, "first.");
    tape_.end_layer();
    out = block(out, "second.");
    tape_.end_layer();
    out = norm(tape_, out, NormKind::layer, weight("norm", 1, kWidth), nullptr, 1e-5);
    // Two losses read one value.
    losses_ = {linear_cross_entropy(tape_, out, table_, {}),
               linear_cross_entropy(tape_, out, weight("head", kVocabulary, kWidth), {})};
    program_ =
        std::make_unique<Program>(tape_, ProgramOptions{.checkpoint_every = checkpoint_every, .backend = backend});
    store_.allocate(device_, program_->completion_order(), type, ParameterStore::Purpose::training);
    store_.initialise(5);
    refresh_compute_copies(store_);
    program_->allocate(device_);
    load_batch();
  }

  // The loss, the mean of all targets; the gradients are in the store afterwards.
  double run() {
    queue();
    double sum = 0;
    for (const LossValues& loss : losses_) {
      for (const float value : values_of(program_->value(loss.row_losses, batch_))) sum += value;
    }
    return sum * batch_.loss_scale;
  }
  void queue() {
    Ledger ledger;
    program_->forward(batch_, ledger);
    program_->backward(batch_, ledger);
  }

  std::vector<float> values_of(const Tensor& f32) const {
    std::vector<float> values(static_cast<size_t>(f32.rows * f32.cols));
    device_.copy_out(values.data(), f32.data, static_cast<int64_t>(values.size()) * 4);
    return values;
  }
  std::vector<float> gradients() const { return values_of(store_.flat_gradient()); }
  // What attention gives, and what attentions of single heads give.
  std::vector<float> attended() const { return values_of(program_->value(attended_, batch_)); }
  std::vector<float> attended_by_head() const { return values_of(program_->value(attended_by_head_, batch_)); }
  ParameterStore& parameters() { return store_; }
  const Tape& tape() const { return tape_; }

 private:
  Parameter* weight(const std::string& name, int64_t rows, int64_t cols) {
    const Initial initial{Initial::Kind::normal, rows == 1 ? 0.8 : 0.3};
    return store_.add(
        {.name = name + ".weight", .rows = rows, .cols = cols, .multiplies = rows > 1, .initial = initial});
  }
  Value attention(Value qkv, int64_t heads) {
    const float scale = 1.0f / std::sqrt(static_cast<float>(kHeadWidth));
    return self_attention(tape_, qkv, {heads, heads, kHeadWidth, scale, true}, 0);
  }

  Value block(Value h, const std::string& prefix) {
    const Value x = norm(tape_, h, NormKind::rms, weight(prefix + "norm", 1, kWidth), nullptr, 1e-5);
    const Value qkv = linear(tape_, x, weight(prefix + "qkv", 3 * kWidth, kWidth));
    const Value q = columns(tape_, qkv, 0, kWidth), k = columns(tape_, qkv, kWidth, kWidth);
    attended_ = attention(qkv, kHeads);
    tape_.read_back(attended_);

    std::vector<Value> heads;
    for (int64_t head = 0; head < kHeads; ++head) {
      std::vector<Value> parts;
      for (int64_t part = 0; part < 3; ++part) {
        parts.push_back(columns(tape_, qkv, part * kWidth + head * kHeadWidth, kHeadWidth));
      }
      heads.push_back(attention(concatenate(tape_, parts), 1));
    }
    attended_by_head_ = concatenate(tape_, heads);
    tape_.read_back(attended_by_head_);

    // The mean score of each row and head, as attention weighs it; how sure the heads are, and of which.
    const Value mean_key = attention(concatenate(tape_, {q, k, k}), kHeads);
    const Value score = sum_columns(tape_, multiply(tape_, q, mean_key), kHeads);  // [N, heads]
    const Value share = softmax(tape_, score);
    const Value information = multiply(tape_, share, log_softmax(tape_, score));
    const Value entropy = pointwise(tape_, sum_columns(tape_, information), Activation::none, -1);  // [N, 1]

    Value y = multiply(tape_, add(tape_, attended_, attended_by_head_), share);  // a factor for each head
    y = multiply(tape_, y, entropy);                                             // one for each row
    y = multiply(tape_, y, weight(prefix + "gate", 1, kWidth));                  // one for each column
    const Value turned = columns(tape_, rotary(tape_, qkv, 2 * kWidth, kHeadWidth, 10000), 8, kWidth);
    const Value gate = gated(tape_, columns(tape_, qkv, 16, 2 * kWidth), Activation::silu);
    const Value bent = columns(tape_, pointwise(tape_, qkv, Activation::tanh, 0.5), 3, kWidth);
    y = add(tape_, add(tape_, y, multiply(tape_, turned, gate)), softmax(tape_, bent, 4));
    y = add(tape_, y, weight(prefix + "bias", 1, kWidth));
    y = pointwise(tape_, y, Activation::tanh, 1);
    return add(tape_, h, multiply(tape_, y, y));  // h is the residual stream
  }

  template <typename T>
  const T* put(const std::vector<T>& values) {
    buffers_.emplace_back(device_, static_cast<int64_t>(values.size() * sizeof(T)));
    device_.copy_in(buffers_.back().data(), values.data(), buffers_.back().bytes());
    return static_cast<const T*>(buffers_.back().data());
  }
  void load_batch() {
    const Ragged ragged({5, 1, 7, 3});
    RowSet rows = ragged.view();
    const auto count = static_cast<size_t>(rows.rows);
    std::vector<int32_t> tokens, targets;
    for (size_t r = 0; r < count; ++r) {
      tokens.push_back(static_cast<int32_t>(r * 7 % kVocabulary));
      targets.push_back(r % 5 == 4 ? -1 : static_cast<int32_t>(r * 3 % kVocabulary));
    }
    rows.starts = put(ragged.starts());
    rows.position = put(std::vector<int32_t>(rows.position, rows.position + count));
    rows.sequence = put(std::vector<int32_t>(rows.sequence, rows.sequence + count));
    batch_.sets.resize(1);
    batch_.sets[0].rows = rows;
    batch_.sets[0].tokens = put(tokens);
    batch_.sets[0].targets = put(targets);
    batch_.loss_scale = 1.0f / static_cast<float>(count - count / 5);
  }

  Device& device_;
  ParameterStore store_;
  Tape tape_;
  Parameter* table_;
  Value attended_, attended_by_head_;
  std::vector<LossValues> losses_;
  std::unique_ptr<Program> program_;
  std::vector<Buffer> buffers_;
  DeviceBatch batch_;
};

// |a - b| / |b|
inline double relative_distance(const std::vector<float>& a, const std::vector<float>& b) {
  double gap = 0, size = 0;
  for (size_t i = 0; i < b.size(); ++i) {
    gap += (double{a[i]} - b[i]) * (double{a[i]} - b[i]);
    size += double{b[i]} * b[i];
  }
  return std::sqrt(gap / size);
}

}  // namespace brisk::testing
