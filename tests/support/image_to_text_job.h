// What the tests of models of images share: images of random pixels with texts as sequences, and one run of such a model.
//
//   const RandomImages images(config.image_layout(), {5, 1, 4}, 23);
//   ImageToTextJob job(config, config.image_layout());
//   const double loss = job.run(images.step());
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "data/images/image_sequences.h"
#include "infer/forward/batch_buffer.h"
#include "infer/forward/forward_run.h"
#include "infer/forward/image_batch_layout.h"
#include "models/model_config.h"
#include "ops/optimizer/parameters.h"
#include "support/numeric.h"
#include "support/tiny_job.h"

namespace brisk::testing {

// Text i has lengths[i] rows; the words depend on the pixels.
class RandomImages final : public Sequences {
 public:
  RandomImages(ImageLayout layout, std::vector<int> lengths, int64_t vocabulary)
      : layout_(std::move(layout)), lengths_(std::move(lengths)), vocabulary_(vocabulary) {}

  int64_t count() const override { return std::ssize(lengths_); }
  int sets() const override { return static_cast<int>(layout_.images.size()) + 1; }
  int64_t rows(int64_t index, int set = 0) const override {
    return set == 1 ? lengths_[static_cast<size_t>(index)] : layout_.images[set == 0 ? 0 : 1].rows();
  }
  LengthTotals totals(int set = 0) const override {
    LengthTotals totals;
    for (int64_t i = 0; i < count(); ++i) totals.add(rows(i, set));
    return totals;
  }
  void append(int64_t index, int64_t /*epoch*/, int32_t sequence, MicroBatch& batch) const override {
    const auto pixel = [&](size_t image, size_t i) {
      const uint64_t key = random_key({static_cast<uint64_t>(index), image});
      return static_cast<uint8_t>(256 * random_uniform(key, i));
    };
    std::vector<Image> images;
    for (const ImageInput& input : layout_.images) {
      Image& image = images.emplace_back(input.height, input.width);
      for (size_t i = 0; i < image.pixels.size(); ++i) image.pixels[i] = pixel(images.size(), i);
    }
    std::vector<int32_t> text = {0};
    for (int64_t i = 0; i < rows(index, 1); ++i) {
      text.push_back(1 + images[0].pixels[static_cast<size_t>(7 * i)] % static_cast<int32_t>(vocabulary_ - 1));
    }
    append(images, {text.data(), text.size() - 1}, {text.data() + 1, text.size() - 1}, sequence, batch);
  }

  // One sequence of these images.
  void append(const std::vector<Image>& images, std::span<const int32_t> tokens, std::span<const int32_t> targets,
              int32_t sequence, MicroBatch& batch) const {
    for (size_t i = 0; i < images.size(); ++i) {
      append_image_rows(images[i], layout_.images[i], sequence, batch.sets[i == 0 ? 0 : 2]);
    }
    append_rows(batch.sets[kTargetSet], tokens, targets, sequence);
    append_fixed_rows(layout_, sequence, batch);
  }

  // All as one optimizer step, in micro-batches of so many images.
  StepBatch step(int64_t together = 1000) const {
    StepBatch step;
    for (int64_t i = 0; i < count(); ++i) {
      if (i % together == 0) step.micro_batches.push_back(empty());
      append(i, 0, static_cast<int32_t>(i), step.micro_batches.back());
      step.valid_tokens += rows(i, 1);
    }
    step.sequences = count();
    return step;
  }
  MicroBatch empty() const {
    MicroBatch batch;
    batch.sets.resize(1 + layout_.images.size() + layout_.fixed_rows.size());
    return batch;
  }
  const ImageLayout& layout() const { return layout_; }

 private:
  ImageLayout layout_;
  std::vector<int> lengths_;
  int64_t vocabulary_;
};

struct ImageToTextOptions {
  DType type = DType::f32;
  int64_t checkpoint_every = 0;
  Backend backend = Backend::cpu;
  Device* device = &cpu_device();
  int threads = 1;
  int64_t images = 8;  // in a micro-batch, at most
  int64_t longest = 6;
};

class ImageToTextJob {
 public:
  ImageToTextJob(const ModelConfig& config, const ImageLayout& layout, const ImageToTextOptions& options = {})
      : threads_(options.threads),
        options_(options),
        layout_(image_text_layout(layout, {.rows = static_cast<double>(options.longest), .longest = options.longest})),
        first_{options.images * layout.images[0].rows(), options.images, layout.images[0].rows()},
        model_(make_model(config, store_)),
        tape_({.activation_type = options.type, .rows = layout_.capacities(first_)}),
        loss_(model_->loss(tape_, {})),
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
    ForwardRun run(store_, {.rows = layout_.capacities(first_), .backend = options_.backend},
                   [&](Tape& tape) { return model_->conditional()->logits(tape); });
    run.forward(batch, ledger_);
    std::vector<float> values;
    run.read(values);
    return values;
  }

  const ConditionalModel& model() const { return *model_->conditional(); }
  ParameterStore& parameters() { return store_; }
  std::vector<float> gradient(const Parameter& parameter) { return values_of(device(), parameter.gradient); }
  std::vector<float> gradients() { return values_of(device(), store_.flat_gradient()); }
  int64_t arena_bytes() const { return program_.arena_bytes(); }
  const BatchLayout& layout() const { return layout_; }
  Device& device() const { return *options_.device; }

 private:
  Threads threads_;
  ImageToTextOptions options_;
  BatchLayout layout_;
  RowCapacity first_;
  ParameterStore store_;
  std::unique_ptr<Model> model_;
  Tape tape_;
  LossValues loss_;
  Program program_;
  BatchBuffer buffer_;
  Ledger ledger_;
};

}  // namespace brisk::testing
