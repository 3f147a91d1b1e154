// A tiny encoder-decoder, to prove that nothing between the sequences and the ops knows how many row sets a model has:
// the source is row set 0, the target row set 1, both ragged, with the same number of sequences.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "data/batch/loader.h"
#include "infer/forward/batch_layout.h"
#include "infer/forward/forward_run.h"
#include "ops/optimizer/parameters.h"
#include "optim/adamw.h"
#include "support/micro_batches.h"
#include "support/optimizer_step.h"
#include "support/tiny_job.h"

namespace brisk {
namespace {

using namespace brisk::testing;

constexpr int64_t kVocabulary = 23, kWidth = 16, kPairHeads = 2, kHeadWidth = 8, kFeedForward = 24, kLongest = 9;

// Two encoder layers that see the whole source, two decoder layers that see the past and the encoder's last rows.
class EncoderDecoder {
 public:
  EncoderDecoder(ParameterStore& store, double dropout) : store_(store), dropout_(dropout) {
    table_ = weight("embedding", kVocabulary, kWidth);
    source_positions_ = weight("source_positions", kLongest, kWidth);
    target_positions_ = weight("target_positions", kLongest, kWidth);
    for (int layer = 0; layer < 2; ++layer) {
      encoder_.push_back({self_attention_parts(fmt::format("encoder.{}.", layer)),
                          feed_forward_parts(fmt::format("encoder.{}.", layer))});
    }
    memory_gain_ = gain("memory_norm");
    for (int layer = 0; layer < 2; ++layer) {
      const std::string prefix = fmt::format("decoder.{}.", layer);
      decoder_.push_back({self_attention_parts(prefix), gain(prefix + "cross_norm"),
                          weight(prefix + "cross_q", kWidth, kWidth), weight(prefix + "cross_kv", 2 * kWidth, kWidth),
                          weight(prefix + "cross_out", kWidth, kWidth), feed_forward_parts(prefix)});
    }
    final_gain_ = gain("final_norm");
  }

  LossValues loss(Tape& tape) const {
    Value h = embedding(tape, 0, table_, {.positions = source_positions_, .dropout = dropout_});
    for (const EncoderLayer& layer : encoder_) {
      h = add_self_attention(tape, h, layer.self, false);
      h = add_feed_forward(tape, h, layer.feed_forward);
      tape.end_layer();
    }
    const Value memory = normal(tape, h, memory_gain_);
    h = embedding(tape, 1, table_, {.positions = target_positions_, .dropout = dropout_});
    for (const DecoderLayer& layer : decoder_) {
      h = add_self_attention(tape, h, layer.self, true);
      const Value q = linear(tape, normal(tape, h, layer.cross_gain), layer.cross_q);
      const Value kv = linear(tape, memory, layer.cross_kv);
      h = linear(tape, cross_attention(tape, q, kv, shape(false), dropout_), layer.cross_out,
                 {.dropout = dropout_, .residual = h});
      h = add_feed_forward(tape, h, layer.feed_forward);
      tape.end_layer();
    }
    return linear_cross_entropy(tape, normal(tape, h, final_gain_), table_, {});
  }

 private:
  struct SelfAttention {
    Parameter *gain, *qkv, *qkv_bias, *out;
  };
  struct FeedForward {
    Parameter *gain, *up, *up_bias, *down;
  };
  struct EncoderLayer {
    SelfAttention self;
    FeedForward feed_forward;
  };
  struct DecoderLayer {
    SelfAttention self;
    Parameter *cross_gain, *cross_q, *cross_kv, *cross_out;
    FeedForward feed_forward;
  };

  Parameter* weight(const std::string& name, int64_t rows, int64_t cols) {
    return store_.add({name + ".weight", rows, cols, true, true, {Initial::Kind::normal, 0.3}, {}});
  }
  Parameter* gain(const std::string& name) {
    return store_.add({name + ".gain", 1, kWidth, false, false, {Initial::Kind::ones}, {}});
  }
  Parameter* bias(const std::string& name, int64_t cols) {
    return store_.add({name + ".bias", 1, cols, false, false, {Initial::Kind::normal, 0.1}, {}});
  }
  SelfAttention self_attention_parts(const std::string& prefix) {
    return {gain(prefix + "attention_norm"), weight(prefix + "qkv", 3 * kWidth, kWidth),
            bias(prefix + "qkv", 3 * kWidth), weight(prefix + "attention_out", kWidth, kWidth)};
  }
  FeedForward feed_forward_parts(const std::string& prefix) {
    return {gain(prefix + "feed_forward_norm"), weight(prefix + "up", kFeedForward, kWidth),
            bias(prefix + "up", kFeedForward), weight(prefix + "down", kWidth, kFeedForward)};
  }

  static AttentionShape shape(bool causal) {
    return {kPairHeads, kPairHeads, kHeadWidth, 1.0f / std::sqrt(static_cast<float>(kHeadWidth)), causal};
  }
  Value normal(Tape& tape, Value x, Parameter* gain) const {
    return norm(tape, x, NormKind::layer, gain, nullptr, 1e-5);
  }
  Value add_self_attention(Tape& tape, Value h, const SelfAttention& parts, bool causal) const {
    const Value qkv = linear(tape, normal(tape, h, parts.gain), parts.qkv, {.bias = parts.qkv_bias});
    return linear(tape, self_attention(tape, qkv, shape(causal), dropout_), parts.out,
                  {.dropout = dropout_, .residual = h});
  }
  Value add_feed_forward(Tape& tape, Value h, const FeedForward& parts) const {
    const Value inner = linear(tape, normal(tape, h, parts.gain), parts.up,
                               {.bias = parts.up_bias, .activation = Activation::gelu_tanh});
    return linear(tape, inner, parts.down, {.dropout = dropout_, .residual = h});
  }

  ParameterStore& store_;
  double dropout_;
  Parameter *table_, *source_positions_, *target_positions_, *memory_gain_, *final_gain_;
  std::vector<EncoderLayer> encoder_;
  std::vector<DecoderLayer> decoder_;
};

// Sequences of the given lengths: the target is the source backwards, as far as it goes.
class Pairs final : public Sequences {
 public:
  Pairs(std::vector<int> source_lengths, std::vector<int> target_lengths)
      : lengths_{std::move(source_lengths), std::move(target_lengths)} {}

  int64_t count() const override { return std::ssize(lengths_[0]); }
  int sets() const override { return 2; }
  int64_t rows(int64_t index, int set = 0) const override {
    return lengths_[static_cast<size_t>(set)][static_cast<size_t>(index)];
  }
  LengthTotals totals(int set = 0) const override {
    LengthTotals totals;
    for (int64_t i = 0; i < count(); ++i) totals.add(rows(i, set));
    return totals;
  }
  void append(int64_t index, int64_t /*epoch*/, int32_t sequence, MicroBatch& batch) const override {
    std::vector<int32_t> source, target = {0};
    const int64_t length = rows(index);
    for (int64_t i = 0; i < length; ++i) {
      source.push_back(1 + static_cast<int32_t>((7 * index + 5 * i * (index + 1)) % 22));
    }
    for (int64_t i = 0; i < rows(index, 1); ++i) {
      target.push_back(source[static_cast<size_t>(std::max<int64_t>(0, length - 1 - i))]);
    }
    add_sequence(batch.sets[0], source, {}, sequence);
    add_sequence(batch.sets[1], {target.begin(), target.end() - 1}, {target.begin() + 1, target.end()}, sequence);
  }

 private:
  std::vector<int> lengths_[2];
};

const std::vector<int> kSourceLengths = {5, 1, 9, 3, 7}, kTargetLengths = {4, 6, 1, 9, 2};

// 64 rows of sources in a micro-batch, and three quarters of that of targets.
BatchLayout pair_layout() {
  BatchLayout layout;
  layout.others = {{[](const RowCapacity& source) {
    return RowCapacity{source.rows * 3 / 4, source.sequences, kLongest};
  }}};
  return layout;
}

// All pairs as one optimizer step, in micro-batches that hold so many rows of sources.
StepBatch step_of(int64_t source_rows = 64) {
  const BatchLayout layout = pair_layout();
  Loader loader(std::make_shared<const Pairs>(kSourceLengths, kTargetLengths),
                {.sequences_per_step = std::ssize(kSourceLengths),
                 .micro_batch_rows = layout.row_limits(layout.capacity(source_rows, kLongest)),
                 .workers = 0,
                 .shuffle = false});
  return loader.next();
}

class PairsJob {
 public:
  // `frozen`: beginnings of the names of parameters that are not trained.
  explicit PairsJob(double dropout, int64_t checkpoint_every = 0, Backend backend = Backend::cpu,
                    Device& device = cpu_device(), const std::vector<std::string>& frozen = {})
      : device_(device),
        model_(freeze(store_, EncoderDecoder(store_, dropout), frozen)),
        tape_({.rows = pair_layout().capacities(pair_layout().capacity(64, kLongest))}),
        loss_(model_.loss(tape_)),
        program_(tape_, {.checkpoint_every = checkpoint_every, .backend = backend}),
        buffer_(device, tape_) {
    store_.allocate(device, program_.completion_order(), DType::f32, ParameterStore::Purpose::training);
    program_.allocate(device);
    store_.initialise(3);
  }

  // The mean loss; the gradients are in the store afterwards.
  double run(const StepBatch& step, uint64_t number = 1) {
    DeviceBatch batch;
    batch.loss_scale = 1.0f / static_cast<float>(step.loss_divisor());
    batch.step = number;
    double sum = 0;
    for (const MicroBatch& micro_batch : step.micro_batches) {
      buffer_.load(micro_batch, batch.sets);
      Ledger ledger;
      program_.forward(batch, ledger);
      program_.backward(batch, ledger);
      for (const float loss : values_of(device_, program_.value(loss_.row_losses, batch))) sum += loss;
      batch.first_of_step = false;
    }
    return sum / static_cast<double>(step.valid_tokens);
  }

  const EncoderDecoder& model() const { return model_; }
  ParameterStore& parameters() { return store_; }
  int64_t arena_bytes() const { return program_.arena_bytes(); }

 private:
  static EncoderDecoder freeze(ParameterStore& store, EncoderDecoder model, const std::vector<std::string>& frozen) {
    for (const auto& parameter : store.all()) {
      for (const std::string& start : frozen) {
        if (parameter->spec.name.starts_with(start)) parameter->spec.trained = false;
      }
    }
    return model;
  }

  Threads threads_{1};
  Device& device_;
  ParameterStore store_;
  EncoderDecoder model_;
  Tape tape_;
  LossValues loss_;
  Program program_;
  BatchBuffer buffer_;
};

std::vector<float> all_gradients(PairsJob& job) {
  return values_of(job.parameters().device(), job.parameters().flat_gradient());
}

TEST(EncoderDecoder, GradientsAreTheSlopesOfTheLoss) {
  const StepBatch pairs = step_of();
  PairsJob job(0.0);
  job.run(pairs);
  for (const auto& parameter : job.parameters().all()) {
    const std::vector<float> values = values_of(cpu_device(), parameter->master);
    job.run(pairs);
    const std::vector<float> gradient = values_of(cpu_device(), parameter->gradient);
    const auto loss_at = [&](size_t entry, float shift) {
      std::vector<float> shifted = values;
      shifted[entry] += shift;
      put_values(cpu_device(), parameter->master, shifted);
      return job.run(pairs);
    };
    double gap = 0, size = 0;
    for (size_t entry = 1; entry < values.size(); entry += std::max<size_t>(1, values.size() / 6)) {
      // The five-point rule: its error falls with the fourth power, so the shift can be large against fp32's rounding.
      const float h = 0.03f;
      const double slope =
          (8 * (loss_at(entry, h) - loss_at(entry, -h)) - (loss_at(entry, 2 * h) - loss_at(entry, -2 * h))) /
          (12.0 * h);
      gap += (slope - gradient[entry]) * (slope - gradient[entry]);
      size += slope * slope;
    }
    put_values(cpu_device(), parameter->master, values);
    EXPECT_LE(std::sqrt(gap), 2e-3 * std::sqrt(size) + 3e-5) << parameter->spec.name;
  }
}

TEST(EncoderDecoder, EveryParameterHasAGradient) {
  PairsJob job(0.1);
  job.run(step_of());
  for (const auto& parameter : job.parameters().all()) {
    const std::vector<float> gradient = values_of(cpu_device(), parameter->gradient);
    EXPECT_GT(distance(gradient, std::vector<float>(gradient.size(), 0.0f)), 1e-4) << parameter->spec.name;
  }
}

// Cross-attention where nothing below the queries is trained, or nothing below the keys and values: the gradients that
// are still wanted are the same.
TEST(EncoderDecoder, GradientsDoNotDependOnWhatIsFrozen) {
  const std::vector<std::string> tables = {"embedding", "source_positions", "target_positions"};
  std::vector<std::string> encoder = tables, queries = tables;
  for (const char* name : {"encoder", "memory_norm", "decoder.0.cross_kv", "decoder.1.cross_kv"})
    encoder.emplace_back(name);
  for (const char* name : {"decoder.0.attention", "decoder.0.qkv", "decoder.0.cross_norm", "decoder.0.cross_q"})
    queries.emplace_back(name);
  const StepBatch pairs = step_of();
  for (const std::vector<std::string>& frozen : {encoder, queries}) {
    for (const Backend backend : {Backend::cpu, Backend::reference}) {
      for (const int64_t checkpoint_every : {0, 1}) {
        PairsJob whole(0.1, checkpoint_every, backend);
        PairsJob part(0.1, checkpoint_every, backend, guarded_device(), frozen);
        EXPECT_EQ(part.run(pairs), whole.run(pairs));
        EXPECT_LT(part.parameters().trained_count(), whole.parameters().trained_count());
        for (const auto& parameter : part.parameters().all()) {
          if (!parameter->spec.trained) continue;
          const Parameter& same = *whole.parameters().find(parameter->spec.name);
          EXPECT_EQ(values_of(guarded_device(), parameter->gradient), values_of(cpu_device(), same.gradient))
              << parameter->spec.name;
        }
      }
    }
  }
}

TEST(EncoderDecoder, LearnsToReverse) {
  const StepBatch pairs = step_of();
  PairsJob job(0.05);
  const double first = job.run(pairs);
  AdamW adamw(job.parameters(), {});
  OptimizerStep optimizer_step(job.parameters(), adamw);
  for (int64_t step = 1; step <= 60; ++step) {
    job.run(pairs, static_cast<uint64_t>(step));
    optimizer_step.run(step, 1e-2);
  }
  EXPECT_GT(first, 2.0);
  EXPECT_LT(job.run(pairs, 61), 0.5 * first);
}

TEST(EncoderDecoder, IsTheSameOnTheReferenceRecomputedAndOnUnreadableMemory) {
  const StepBatch pairs = step_of();
  PairsJob job(0.1), reference(0.1, 0, Backend::reference), recomputed(0.1, 1), pairs_recomputed(0.1, 2),
      guarded(0.1, 1, Backend::cpu, guarded_device());
  const double loss = job.run(pairs);
  const std::vector<float> gradients = all_gradients(job);
  EXPECT_NEAR(reference.run(pairs), loss, 1e-5 * loss);
  EXPECT_LE(distance(all_gradients(reference), gradients), 1e-5);
  for (PairsJob* other : {&recomputed, &pairs_recomputed, &guarded}) {
    EXPECT_EQ(other->run(pairs), loss);
    EXPECT_EQ(all_gradients(*other), gradients);
  }
  EXPECT_LT(recomputed.arena_bytes(), job.arena_bytes());
}

// Packed pairs give the sum of the pairs alone: no sequence sees another's source or target.
TEST(EncoderDecoder, PairsDoNotSeeEachOther) {
  const StepBatch pairs = step_of();
  PairsJob job(0.0);
  const double packed = job.run(pairs) * static_cast<double>(pairs.valid_tokens);
  double sum = 0;
  for (size_t s = 0; s < kSourceLengths.size(); ++s) {
    StepBatch alone;
    alone.micro_batches = {cut(pairs.micro_batches[0], s)};
    alone.valid_tokens = alone.micro_batches[0].sets[1].rows();
    sum += job.run(alone) * static_cast<double>(alone.valid_tokens);
  }
  EXPECT_NEAR(packed, sum, 1e-5 * sum);
}

TEST(EncoderDecoder, LearnsTheSameHoweverItsPairsAreDivided) {
  PairsJob job(0.1), divided(0.1);
  ASSERT_EQ(step_of().micro_batches.size(), 1u);
  const StepBatch parts = step_of(12);  // and 9 targets
  ASSERT_GE(parts.micro_batches.size(), 3u);
  for (const MicroBatch& part : parts.micro_batches) {
    EXPECT_LE(part.sets[0].rows(), 12);
    EXPECT_LE(part.sets[1].rows(), 9);
  }
  const double loss = job.run(step_of());
  EXPECT_NEAR(divided.run(parts), loss, 1e-5 * loss);
  EXPECT_LE(distance(all_gradients(divided), all_gradients(job)), 1e-5);
}

TEST(EncoderDecoder, KnowsTheLengthsOfBothSets) {
  const Pairs pairs(kSourceLengths, kTargetLengths);
  const BatchLayout layout = pair_layout();
  EXPECT_EQ(longest_of_sets(pairs), (std::vector<int64_t>{9, 9}));
  EXPECT_EQ(layout.least_rows(longest_of_sets(pairs)), 12);
  const std::vector<RowMeans> means = row_means(pairs, layout);
  ASSERT_EQ(means.size(), 2u);
  EXPECT_DOUBLE_EQ(means[0].rows, 25.0 / 5);
  EXPECT_DOUBLE_EQ(means[1].rows, 22.0 / 5);
  EXPECT_DOUBLE_EQ(means[1].attended, (16.0 + 36 + 1 + 81 + 4) / 22);
  EXPECT_FALSE(means[1].derived);

  // Per token of source and target: products of the encoder's rows, of the decoder's, and attention between them.
  PairsJob job(0);
  Tape tape({.rows = layout.capacities(layout.capacity(64, kLongest))});
  job.model().loss(tape);
  const Program program(tape, {});
  double sum = 0;
  for (const double flop : program.flop(means)) sum += flop;
  const double D = kWidth, F = kFeedForward, V = kVocabulary, source = means[0].rows, target = means[1].rows;
  const double encoder = 2 * 6 * source * (4 * D * D + 2 * D * F + 2 * D * means[0].attended);
  const double decoder = 2 * 6 * target * (4 * D * D + 2 * D * F + D * means[1].attended);
  const double cross = 2 * 6 * (target * 2 * D * D + source * 2 * D * D + target * 2 * D * means[0].attended);
  EXPECT_NEAR(sum, encoder + decoder + cross + 6 * target * V * D, 1e-9 * sum);
}

TEST(EncoderDecoder, IsEvaluatedByTheSamePath) {
  PairsJob job(0.0);
  const StepBatch pairs = step_of();
  const double loss = job.run(pairs) * static_cast<double>(pairs.valid_tokens);
  ForwardRun run(job.parameters(), {.rows = pair_layout().capacities(pair_layout().capacity(12, kLongest))},
                 [&](Tape& tape) { return job.model().loss(tape).sums; });
  Ledger ledger;
  double sum = 0;
  int64_t micro_batches = 0;
  const int64_t rows = run.forward(Pairs(kSourceLengths, kTargetLengths), ledger, [&](const MicroBatch&) {
    std::vector<float> sums;
    run.read(sums);
    sum += sums[0];
    ++micro_batches;
  });
  EXPECT_NEAR(sum, loss, 1e-5 * loss);
  EXPECT_GE(micro_batches, 3);
  EXPECT_EQ(rows, 25 + 22);
}

}  // namespace
}  // namespace brisk
