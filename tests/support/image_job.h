// What the tests of image encoders share: tiny ones of every kind, small images, and one run of them.
//
//   ImageJob job(tiny_image_classifier("swin"));
//   const double loss = job.run({image_batch(job.config(), {0, 1, 2})});
#pragma once

#include <string>
#include <vector>

#include "base/random.h"
#include "infer/forward/batch_buffer.h"
#include "infer/forward/forward_run.h"
#include "models/image_classifier.h"
#include "ops/optimizer/parameters.h"
#include "support/tiny_job.h"
#include "tensor/program.h"

namespace brisk::testing {

// "vit", "dit", "beit", "beit_shared" or "swin": as scripts/make_image_encoder_golden.py makes them.
inline ImageClassifierConfig tiny_image_classifier(const std::string& shape) {
  using Encoder = ImageEncoderConfig;
  ImageClassifierConfig config;
  config.num_labels = 3;
  Encoder& encoder = config.encoder;
  encoder.kind = shape == "vit" ? Encoder::Kind::vit : shape == "swin" ? Encoder::Kind::swin : Encoder::Kind::beit;
  encoder.d_model = 12;
  encoder.num_layers = encoder.num_heads = 2;
  encoder.d_ff = 20;
  encoder.image = ImageInput::resized(shape == "vit" ? 8 : 12, 12, 4, true);
  encoder.positions = shape == "beit"          ? Encoder::Positions::relative
                      : shape == "beit_shared" ? Encoder::Positions::shared_relative
                                               : Encoder::Positions::learned;
  encoder.layer_scale = shape == "dit" || shape == "beit" ? 0.1 : 0;
  encoder.final_norm = shape != "dit" && shape != "beit";
  config.mean_pooling = shape != "vit" && shape != "beit_shared";
  if (shape == "swin") {
    encoder.image = ImageInput::resized(24, 36, 2, false);
    encoder.positions = Encoder::Positions::none;
    encoder.d_model = 8;
    encoder.stages = {{.num_layers = 2, .num_heads = 1, .d_ff = 16}, {.num_layers = 2, .num_heads = 2, .d_ff = 32}};
    encoder.window = 3;
    encoder.norm_epsilon = 1e-5;
  }
  encoder.image.processing.mean = {0.5f, 0.4f, 0.6f};
  encoder.image.processing.std = {0.5f, 0.25f, 0.3f};
  return config;
}

// The rows of one more image, whose 8-bit pixels are [3, height, width]; and those of its label.
inline void add_image(const ImageClassifierConfig& config, const std::vector<uint8_t>& pixels, int32_t label,
                      MicroBatch& batch) {
  const ImageInput& input = config.encoder.image;
  const std::vector<int64_t> fixed = config.encoder.fixed_rows();
  if (batch.sets.size() < 2 + fixed.size()) batch.sets.resize(2 + fixed.size());
  MicroBatch::Set &patches = batch.sets[0], &each = batch.derived_set(1, 0);
  const auto sequence = static_cast<int32_t>(patches.sequences());
  each.source.push_back(static_cast<int32_t>(patches.rows()));
  each.targets.push_back(label);
  each.position.push_back(0);
  each.sequence.push_back(sequence);
  each.end_sequence(each.source.size());
  const auto add_row = [&](int32_t token) {
    patches.tokens.push_back(token);
    patches.position.push_back(static_cast<int32_t>(patches.position.size()) - patches.starts.back());
    patches.sequence.push_back(sequence);
  };
  if (input.class_row) {
    add_row(1);
    patches.pixels.resize(patches.pixels.size() + static_cast<size_t>(input.cols()));
  }
  for (int64_t top = 0; top < input.height; top += input.patch) {
    for (int64_t left = 0; left < input.width; left += input.patch) {
      add_row(0);
      for (int64_t color = 0; color < 3; ++color) {
        for (int64_t y = top; y < top + input.patch; ++y) {
          const auto from = pixels.begin() + (color * input.height + y) * input.width + left;
          patches.pixels.insert(patches.pixels.end(), from, from + input.patch);
        }
      }
    }
  }
  patches.end_sequence(patches.tokens.size());
  for (size_t i = 0; i < fixed.size(); ++i) batch.derived_set(2 + i, 0).add_fixed_rows(fixed[i], sequence);
}

// Images that are drawn by these numbers.
inline MicroBatch image_batch(const ImageClassifierConfig& config, const std::vector<int>& numbers) {
  MicroBatch batch;
  for (const int number : numbers) {
    std::vector<uint8_t> pixels(static_cast<size_t>(3 * config.encoder.image.height * config.encoder.image.width));
    for (size_t i = 0; i < pixels.size(); ++i) {
      pixels[i] = static_cast<uint8_t>(random_key({static_cast<uint64_t>(number), i}) >> 40);
    }
    add_image(config, pixels, number % 3, batch);
  }
  return batch;
}

struct ImageJobOptions {
  DType type = DType::f32;
  int64_t checkpoint_every = 0;
  Backend backend = Backend::cpu;
  Device* device = &cpu_device();
  int threads = 1;
};

class ImageJob {
 public:
  explicit ImageJob(const ImageClassifierConfig& config, const ImageJobOptions& options = {})
      : threads_(options.threads),
        options_(options),
        model_(config, store_),
        tape_({.activation_type = options.type, .rows = rows()}),
        loss_(model_.loss(tape_, {})),
        program_(tape_, {.checkpoint_every = options.checkpoint_every, .backend = options.backend}),
        buffer_(*options.device, tape_) {
    store_.allocate(device(), program_.completion_order(), options.type, ParameterStore::Purpose::training);
    program_.allocate(device());
    store_.initialise(3);
    // Larger than training would begin with, so that every gradient matters.
    for (const auto& parameter : store_.all()) {
      std::vector<float> values = values_of(device(), parameter->master);
      const uint64_t key = random_key({29, static_cast<uint64_t>(parameter->index)});
      for (size_t i = 0; i < values.size(); ++i) {
        const auto draw = static_cast<float>(random_normal(key, i));
        values[i] = parameter->spec.rows == 1 ? values[i] + 0.1f * draw : 0.3f * draw;
      }
      put_values(device(), parameter->master, values);
    }
    refresh_compute_copies(store_);
  }

  // The mean loss; the gradients are in the store afterwards.
  double run(const std::vector<MicroBatch>& micro_batches, uint64_t number = 1) {
    int64_t images = 0;
    for (const MicroBatch& micro_batch : micro_batches) images += micro_batch.sequences();
    DeviceBatch batch;
    batch.loss_scale = 1.0f / static_cast<float>(images);
    batch.step = number;
    double sum = 0;
    for (const MicroBatch& micro_batch : micro_batches) {
      buffer_.load(micro_batch, batch.sets);
      program_.forward(batch, ledger_);
      program_.backward(batch, ledger_);
      for (const float loss : values_of(device(), program_.value(loss_.row_losses, batch))) sum += loss;
      batch.first_of_step = false;
    }
    return sum / static_cast<double>(images);
  }

  // [S, C]
  std::vector<float> logits(const MicroBatch& batch) {
    ForwardRun run(store_, {.rows = rows(), .backend = options_.backend},
                   [&](Tape& tape) { return model_.class_logits(tape); });
    run.forward(batch, ledger_);
    std::vector<float> values;
    run.read(values);
    return values;
  }

  const ImageClassifierConfig& config() const { return model_.config(); }
  ParameterStore& parameters() { return store_; }
  std::vector<float> gradient(const Parameter& parameter) { return values_of(device(), parameter.gradient); }
  std::vector<float> gradients() { return values_of(device(), store_.flat_gradient()); }
  int64_t arena_bytes() const { return program_.arena_bytes(); }
  Device& device() const { return *options_.device; }

 private:
  static constexpr int64_t kMost = 4;  // images
  std::vector<RowCapacity> rows() const {
    const ImageEncoderConfig& encoder = model_.config().encoder;
    std::vector<RowCapacity> rows = {{kMost * encoder.image.rows(), kMost, encoder.image.rows()}, {kMost, kMost, 1}};
    for (const int64_t fixed : encoder.fixed_rows()) rows.push_back({kMost * fixed, kMost, fixed});
    return rows;
  }

  Threads threads_;
  ImageJobOptions options_;
  ParameterStore store_;
  ImageClassifier model_;
  Tape tape_;
  LossValues loss_;
  Program program_;
  BatchBuffer buffer_;
  Ledger ledger_;
};

}  // namespace brisk::testing
