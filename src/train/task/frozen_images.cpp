#include "train/task/frozen_images.h"

#include <algorithm>
#include <span>
#include <vector>

#include "base/hash.h"
#include "base/terminal/work_bar.h"
#include "checkpoint/store_checksum.h"
#include "data/images/image_list.h"
#include "infer/architecture/architecture.h"
#include "infer/forward/forward_run.h"
#include "infer/forward/image_batch_layout.h"
#include "infer/open/begin_weights.h"
#include "infer/open/model_source.h"
#include "ops/optimizer/parameters.h"
#include "ops/tape/tape_ops.h"

namespace brisk {

namespace {

constexpr uint64_t kFeaturesFormat = 1;
constexpr int64_t kImagesTogether = 8;

// The rows that have images, by number.
std::vector<int64_t> rows_with_images(const ExampleSet& examples) {
  std::vector<int64_t> rows;
  for (int64_t i = 0; i < examples.count(); ++i) rows.push_back(examples.row_of(i));
  std::sort(rows.begin(), rows.end());
  return rows;
}

}  // namespace

FrozenImageEncoders::FrozenImageEncoders(const Job& job, DType compute_type, const std::string& checkpoint,
                                         Device& device)
    : layout_(architecture_of(job.model).image_layout(job.model)) {
  const ModelConfig config = training_config(job);
  model_ = make_model(config, store_);
  store_.allocate(device, {}, compute_type, ParameterStore::Purpose::inference);
  if (checkpoint.empty()) {
    begin_weights(job, store_);
  } else {
    open_model_source(checkpoint).load_into(store_, nonfinite_of(job));
  }
  refresh_compute_copies(store_);
  weights_key_ = checksum_of_parameters(store_, [](const Parameter& parameter) { return !parameter.spec.trained; });
  // (A GPU rounds in its own way: what it trains on it computes itself.)
  for (const uint64_t part : {kFeaturesFormat, fingerprint(config), static_cast<uint64_t>(compute_type),
                              uint64_t{device.is_cuda() ? 1u : 0u}})
    weights_key_ = hash_mix(weights_key_, part);
  // Shapes alone: what an encoder's rows are of, and how many an image has.
  Tape tape({.rows = image_text_layout(layout_, {})
                         .capacities({layout_.images.front().rows(), 1, layout_.images.front().rows()})});
  for (int64_t i = 0; i < model_->image_encoders(); ++i) {
    const EncodedImages made = model_->record_image_encoder(tape, i);
    encoders_.push_back({made.set, tape.row_sets()[static_cast<size_t>(made.set)].rows, tape.spec(made.rows).cols});
  }
}

uint64_t FrozenImageEncoders::key_of(const std::string& fingerprint, size_t encoder) const {
  return hash_mix(hash_bytes(fingerprint, weights_key_), static_cast<uint64_t>(encoder));
}

ExampleActivationsShape FrozenImageEncoders::shape_of(const ExampleSet& rows, size_t encoder) const {
  const Encoder& made = encoders_[encoder];
  return {.examples = rows.data().rows(),
          .row_bytes = made.width * size_of(store_.compute_type()),
          .rows_of = [with = rows_with_images(rows), count = made.rows](int64_t row) {
            return std::binary_search(with.begin(), with.end(), row) ? count : 0;
          }};
}

int64_t FrozenImageEncoders::file_bytes(const ExampleSet& rows) const {
  int64_t bytes = 0;
  for (size_t i = 0; i < encoders_.size(); ++i) bytes += shape_of(rows, i).file_bytes();
  return bytes;
}

bool FrozenImageEncoders::are_there(const ExampleSet& rows, const std::string& fingerprint) const {
  for (size_t i = 0; i < encoders_.size(); ++i) {
    if (!has_example_activations(rows.data().cache_directory(), "features", key_of(fingerprint, i), shape_of(rows, i)))
      return false;
  }
  return true;
}

std::shared_ptr<const ImageFeatures> FrozenImageEncoders::features_of(const ExampleSet& rows, const ImageStore& store,
                                                                      const std::string& fingerprint) const {
  auto features = std::make_shared<ImageFeatures>();
  for (size_t i = 0; i < encoders_.size(); ++i) {
    features->add(encoders_[i].set,
                  open_or_make_example_activations(
                      rows.data().cache_directory(), "features", key_of(fingerprint, i), shape_of(rows, i),
                      [&](ExampleActivationsWriter& writer) { make(rows, store, i, writer); }));
  }
  return features;
}

void FrozenImageEncoders::make(const ExampleSet& rows, const ImageStore& store, size_t encoder,
                               ExampleActivationsWriter& writer) const {
  const BatchLayout layout = image_text_layout(layout_, {});
  const int64_t of_image = layout_.images.front().rows(),
                together = std::max(kImagesTogether * of_image, kMicroBatchTokens);
  const RowCapacity capacity =
      layout.capacity(store_.device().is_cuda() ? together : std::max(of_image, kMicroBatchTokens), of_image);
  ForwardRun run(store_, {.rows = layout.capacities(capacity), .backend = backend_of(store_.device())},
                 [&](Tape& tape) {
                   // What is the residual stream itself is f32, and the products that read it round it so.
                   const Value made = model_->record_image_encoder(tape, static_cast<int64_t>(encoder)).rows;
                   const Value value = convert(tape, made, tape.activation_type());
                   tape.read_back(value);
                   return value;
                 });
  const std::vector<int64_t> images = rows_with_images(rows);
  WorkBar bar("images by the frozen encoders");
  const int64_t total = shape_of(rows, encoder).file_bytes();
  int64_t done = 0;
  Ledger ledger;
  std::vector<std::byte> host;
  // A few steps of the micro-batches at a time, so that their images are decoded ahead.
  constexpr size_t kAhead = 64;
  for (size_t begin = 0; begin < images.size(); begin += kAhead) {
    const std::span<const int64_t> some = std::span(images).subspan(begin, std::min(kAhead, images.size() - begin));
    store.prefetch(some);
    run.forward(ImageList(store, some, layout_, ImageList::Asks::text), ledger, [&](const MicroBatch&) {
      run.read(host);
      writer.append(host);
      bar.update(done += std::ssize(host), total);
    });
  }
}

}  // namespace brisk
