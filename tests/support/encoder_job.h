// What the encoder's tests share: tiny encoders of every kind, ragged batches with picked rows, and one run of them.
//
//   EncoderJob job(tiny_encoder(EncoderConfig::Head::relu));
//   double loss = job.run(classify_batch({5, 1, 9}));
#pragma once

#include "infer/forward/forward_run.h"
#include "models/encoder.h"
#include "ops/optimizer/parameters.h"
#include "support/micro_batches.h"
#include "support/tiny_job.h"

namespace brisk::testing {

constexpr EncoderConfig::Head kHeads[] = {EncoderConfig::Head::pooler_tanh, EncoderConfig::Head::relu,
                                          EncoderConfig::Head::roberta, EncoderConfig::Head::mlm};

// With dropout on, each kind with a probability of its own.
inline EncoderConfig tiny_encoder(EncoderConfig::Head head) {
  EncoderConfig config;
  config.vocab_size = 43;
  config.d_model = 32;
  config.num_layers = 3;
  config.num_heads = 4;
  config.d_ff = 48;
  config.max_length = 24;
  config.position_offset = head == EncoderConfig::Head::roberta ? 2 : 0;
  config.types = head == EncoderConfig::Head::relu ? 0 : head == EncoderConfig::Head::roberta ? 1 : 2;
  config.dropout = 0.1;
  config.attention_dropout = 0.2;
  config.classifier_dropout = 0.15;
  config.head = head;
  config.num_labels = 3;
  return config;
}

inline EncoderConfig without_dropout(EncoderConfig config) {
  config.dropout = config.attention_dropout = config.classifier_dropout = 0;
  return config;
}

// Sequences of the given lengths with their tokens, types and places.
inline MicroBatch encoder_batch(const std::vector<int>& lengths) {
  MicroBatch batch;
  MicroBatch::Set& rows = batch.sets[0];
  for (size_t s = 0; s < lengths.size(); ++s) {
    const uint64_t key = random_key({17, s});
    for (int p = 0; p < lengths[s]; ++p) {
      rows.tokens.push_back(static_cast<int32_t>(43 * random_uniform(key, static_cast<uint64_t>(p))));
      rows.types.push_back(p > lengths[s] / 2 ? 1 : 0);
      rows.position.push_back(p);
      rows.sequence.push_back(static_cast<int32_t>(s));
    }
    rows.end_sequence(rows.tokens.size());
  }
  return batch;
}

inline void pick(MicroBatch& batch, int32_t row, int32_t target) {
  MicroBatch::Set& picked = batch.derived_set(1, 0);
  picked.source.push_back(row);
  picked.position.push_back(batch.sets[0].position[static_cast<size_t>(row)]);
  picked.sequence.push_back(batch.sets[0].sequence[static_cast<size_t>(row)]);
  picked.targets.push_back(target);
}

inline void end_picked(MicroBatch& batch) {
  MicroBatch::Set& picked = batch.derived_set(1, 0);
  picked.end_sequence(picked.source.size());
}

inline MicroBatch classify_batch(const std::vector<int>& lengths) {
  MicroBatch batch = encoder_batch(lengths);
  for (size_t s = 0; s < lengths.size(); ++s) {
    const int32_t first = batch.sets[0].starts[s];
    pick(batch, first, batch.sets[0].tokens[static_cast<size_t>(first)] % 3);
    end_picked(batch);
  }
  return batch;
}

// Every fourth token, so that some sequences have several and those of length 1 have none.
inline MicroBatch masked_batch(const std::vector<int>& lengths) {
  MicroBatch batch = encoder_batch(lengths);
  for (size_t s = 0; s < lengths.size(); ++s) {
    for (int32_t row = batch.sets[0].starts[s] + 1; row < batch.sets[0].starts[s + 1]; row += 4) {
      pick(batch, row, std::exchange(batch.sets[0].tokens[static_cast<size_t>(row)], 2));
    }
    end_picked(batch);
  }
  return batch;
}

inline MicroBatch batch_for(const EncoderConfig& config, const std::vector<int>& lengths) {
  return config.is_classifier() ? classify_batch(lengths) : masked_batch(lengths);
}

struct EncoderJobOptions {
  DType type = DType::f32;
  int64_t checkpoint_every = 0;
  Backend backend = Backend::cpu;
  Device* device = &cpu_device();
};

class EncoderJob {
 public:
  explicit EncoderJob(const EncoderConfig& config, const EncoderJobOptions& options = {})
      : options_(options),
        encoder_(config, store_),
        tape_({.activation_type = options.type, .rows = rows()}),
        loss_(encoder_.loss(tape_, {})),
        program_(tape_, {.checkpoint_every = options.checkpoint_every, .backend = options.backend}),
        buffer_(*options.device, tape_) {
    store_.allocate(*options.device, program_.completion_order(), options.type, ParameterStore::Purpose::training);
    program_.allocate(*options.device);
    store_.initialise(3);
    // Larger than training would begin with, so that every gradient matters.
    for (const auto& parameter : store_.all()) {
      std::vector<float> values = values_of(device(), parameter->master);
      const uint64_t key = random_key({29, static_cast<uint64_t>(parameter->index)});
      for (size_t i = 0; i < values.size(); ++i) {
        values[i] =
            parameter->spec.rows > 1 ? 8 * values[i] : values[i] + 0.1f * static_cast<float>(random_normal(key, i));
      }
      put_values(device(), parameter->master, values);
    }
    refresh_compute_copies(store_);
  }

  // The sum of weight * loss; the gradients of sum / divisor are in the store afterwards.
  double run(const MicroBatch& batch, double divisor, uint64_t step = 1, bool first_of_step = true) {
    DeviceBatch device_batch;
    buffer_.load(batch, device_batch.sets);
    device_batch.loss_scale = static_cast<float>(1 / divisor);
    device_batch.first_of_step = first_of_step;
    device_batch.step = step;
    program_.forward(device_batch, ledger_);
    program_.backward(device_batch, ledger_);
    return values_of(device(), program_.value(loss_.sums, device_batch))[0];
  }
  // The mean loss of a batch without weights.
  double run(const MicroBatch& batch) {
    const auto rows = static_cast<double>(batch.sets[1].rows());
    return run(batch, rows) / rows;
  }

  // [picked rows, classes or words]
  std::vector<float> logits(const MicroBatch& batch) {
    return run_forward<float>(batch, [&](Tape& tape) { return encoder_.head_logits(tape); });
  }

  // What the first layers make of a batch: for an encoder with so many cached_layers.
  std::vector<std::byte> rows_after(const MicroBatch& batch, int64_t layers) {
    return run_forward<std::byte>(batch, [&](Tape& tape) { return encoder_.rows_after(tape, layers); });
  }

  std::vector<float> gradient(const Parameter& parameter) { return values_of(device(), parameter.gradient); }
  std::vector<float> gradients() { return values_of(device(), store_.flat_gradient()); }
  ParameterStore& parameters() { return store_; }
  int64_t arena_bytes() const { return program_.arena_bytes(); }

 private:
  static std::vector<RowCapacity> rows() { return {{160, 16, 24}, {48, 16, 24}}; }
  Device& device() const { return *options_.device; }
  template <typename T>
  std::vector<T> run_forward(const MicroBatch& batch, const std::function<Value(Tape&)>& record) {
    ForwardRun run(store_, {.rows = rows(), .backend = options_.backend}, record);
    run.forward(batch, ledger_);
    std::vector<T> values;
    run.read(values);
    return values;
  }

  Threads threads_{1};
  EncoderJobOptions options_;
  ParameterStore store_;
  Encoder encoder_;
  Tape tape_;
  LossValues loss_;
  Program program_;
  BatchBuffer buffer_;
  Ledger ledger_;
};

}  // namespace brisk::testing
