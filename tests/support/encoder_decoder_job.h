// What the tests of encoder-decoders share: tiny ones of every shape, ragged pairs of texts, and one run of them.
//
//   PairsJob job(tiny_encoder_decoder("t5"));
//   const double loss = job.run(step_of_pairs());
#pragma once

#include "data/batch/loader.h"
#include "infer/forward/batch_layout.h"
#include "infer/forward/forward_run.h"
#include "models/encoder_decoder.h"
#include "ops/optimizer/parameters.h"
#include "support/micro_batches.h"
#include "support/tiny_job.h"

namespace brisk::testing {

constexpr int64_t kPairVocabulary = 23, kLongestOfPairs = 9;

inline EncoderDecoderConfig without_dropout(EncoderDecoderConfig config) {
  config.dropout = config.attention_dropout = config.activation_dropout = config.final_dropout = 0;
  return config;
}

// "vanilla", "post", "marian", "bart", "t5", "t5_gated", "bert2bert", "rotary"; with dropout on, each kind with a probability
// of its own.
inline EncoderDecoderConfig tiny_encoder_decoder(const std::string& shape) {
  using Config = EncoderDecoderConfig;
  Config config;
  config.source_vocab_size = config.target_vocab_size = kPairVocabulary;
  config.encoder = config.decoder = {.d_model = 16,
                                     .num_layers = 2,
                                     .num_heads = 2,
                                     .head_width = 8,
                                     .d_ff = 24,
                                     .max_length = kLongestOfPairs,
                                     .types = 0};
  config.activation_dropout = 0.05;
  config.final_dropout = 0.07;
  config.attention_dropout = 0.15;
  if (shape == "vanilla") config.positions = Config::Positions::interleaved_sinusoidal;
  if (shape == "post") {
    config.pre_norm = false;
    config.positions = Config::Positions::learned;
    config.feed_forward = Config::FeedForward::gelu_tanh;
    config.tie_head = false;
  }
  if (shape == "marian") {
    config.pre_norm = false;
    config.feed_forward = Config::FeedForward::silu;
    config.head_bias = Config::HeadBias::fixed;
  }
  if (shape == "bart") {
    config.pre_norm = config.scale_embeddings = false;
    config.embedding_norm = true;
    config.positions = Config::Positions::learned;
    config.position_offset = 2;
    config.feed_forward = Config::FeedForward::gelu_erf;
    config.head_bias = Config::HeadBias::trained;
  }
  if (shape.starts_with("t5")) {
    config.norm = NormKind::rms;
    config.positions = Config::Positions::relative;
    config.relative_buckets = 8;
    config.relative_distance = 6;
    config.bias = config.scale_embeddings = config.scale_attention = false;
    config.encoder.head_width = config.decoder.head_width = 6;
    config.scale_head = true;
  }
  if (shape == "t5_gated") {
    config.feed_forward = Config::FeedForward::gated_gelu;
    config.tie_head = config.scale_head = false;
  }
  if (shape == "bert2bert") {
    config.pre_norm = config.scale_embeddings = config.share_embeddings = false;
    config.embedding_norm = config.head_transform = true;
    config.positions = Config::Positions::learned;
    config.feed_forward = Config::FeedForward::gelu_erf;
    config.head_bias = Config::HeadBias::trained;
    config.source_vocab_size = 31;
    config.encoder.d_model = 12;
    config.encoder.num_heads = 3;
    config.encoder.head_width = 4;
    config.encoder.num_layers = 1;
    config.encoder.types = config.decoder.types = 2;
  }
  if (shape == "rotary") {
    config.positions = Config::Positions::rotary;
    config.feed_forward = Config::FeedForward::gated_silu;
    config.share_embeddings = false;
  }
  return config;
}

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

inline const std::vector<int> kSourceLengths = {5, 1, 9, 3, 7}, kTargetLengths = {4, 6, 1, 9, 2};

// Up to 64 rows of sources in a micro-batch, and three quarters of that of targets.
inline BatchLayout pair_layout() {
  BatchLayout layout;
  layout.others = {{[](const RowCapacity& source) {
    return RowCapacity{source.rows * 3 / 4, source.sequences, kLongestOfPairs};
  }}};
  return layout;
}

// All pairs as one optimizer step, in micro-batches that hold so many rows of sources.
inline StepBatch step_of_pairs(int64_t source_rows = 64) {
  const BatchLayout layout = pair_layout();
  Loader loader(std::make_shared<const Pairs>(kSourceLengths, kTargetLengths),
                {.sequences_per_step = std::ssize(kSourceLengths),
                 .micro_batch_rows = layout.row_limits(layout.capacity(source_rows, kLongestOfPairs)),
                 .workers = 0,
                 .shuffle = false});
  return loader.next();
}

struct PairsJobOptions {
  DType type = DType::f32;
  int64_t checkpoint_every = 0;
  Backend backend = Backend::cpu;
  Device* device = &cpu_device();
  std::vector<std::string> frozen;  // beginnings of the names of parameters that are not trained
  int threads = 1;
  double label_smoothing = 0;
  int64_t longest = kLongestOfPairs;
};

class PairsJob {
 public:
  explicit PairsJob(const EncoderDecoderConfig& config, const PairsJobOptions& options = {})
      : threads_(options.threads),
        options_(options),
        model_(config, store_),
        tape_({.activation_type = options.type, .rows = rows()}),
        loss_((freeze(), model_.loss(tape_, {.label_smoothing = options.label_smoothing}))),
        program_(tape_, {.checkpoint_every = options.checkpoint_every, .backend = options.backend}),
        buffer_(*options.device, tape_) {
    store_.allocate(device(), program_.completion_order(), options.type, ParameterStore::Purpose::training);
    program_.allocate(device());
    store_.initialise(3);
    // Larger than training would begin with, so that every gradient matters.
    for (const auto& parameter : store_.all()) {
      if (parameter->spec.name.ends_with("positions.weight") && !parameter->spec.trained) continue;
      std::vector<float> values = values_of(device(), parameter->master);
      const uint64_t key = random_key({29, static_cast<uint64_t>(parameter->index)});
      for (size_t i = 0; i < values.size(); ++i) {
        const auto draw = static_cast<float>(random_normal(key, i));
        const bool table = parameter->spec.name.find("embedding.weight") != std::string::npos;
        values[i] = parameter->spec.rows == 1 ? values[i] + 0.1f * draw : (table ? 0.25f : 0.3f) * draw;
      }
      put_values(device(), parameter->master, values);
    }
    refresh_compute_copies(store_);
  }

  // The mean loss; the gradients are in the store afterwards.
  double run(const StepBatch& step, uint64_t number = 1) {
    DeviceBatch batch;
    batch.loss_scale = 1.0f / static_cast<float>(step.loss_divisor());
    batch.step = number;
    double sum = 0;
    for (const MicroBatch& micro_batch : step.micro_batches) {
      buffer_.load(micro_batch, batch.sets);
      program_.forward(batch, ledger_);
      program_.backward(batch, ledger_);
      for (const float loss : values_of(device(), program_.value(loss_.row_losses, batch))) sum += loss;
      batch.first_of_step = false;
    }
    return sum / static_cast<double>(step.valid_tokens);
  }

  // Of the rows of set 1, [rows, V].
  std::vector<float> logits(const MicroBatch& batch) {
    ForwardRun run(store_, {.rows = rows(), .backend = options_.backend},
                   [&](Tape& tape) { return model_.logits(tape); });
    run.forward(batch, ledger_);
    std::vector<float> values;
    run.read(values);
    return values;
  }

  const EncoderDecoder& model() const { return model_; }
  ParameterStore& parameters() { return store_; }
  std::vector<float> gradient(const Parameter& parameter) { return values_of(device(), parameter.gradient); }
  std::vector<float> gradients() { return values_of(device(), store_.flat_gradient()); }
  int64_t arena_bytes() const { return program_.arena_bytes(); }
  Device& device() const { return *options_.device; }

 private:
  std::vector<RowCapacity> rows() const { return {{64, 8, options_.longest}, {48, 8, options_.longest}}; }
  void freeze() {
    for (const auto& parameter : store_.all()) {
      for (const std::string& start : options_.frozen) {
        if (parameter->spec.name.starts_with(start)) parameter->spec.trained = false;
      }
    }
  }

  Threads threads_;
  PairsJobOptions options_;
  ParameterStore store_;
  EncoderDecoder model_;
  Tape tape_;
  LossValues loss_;
  Program program_;
  BatchBuffer buffer_;
  Ledger ledger_;
};

}  // namespace brisk::testing
