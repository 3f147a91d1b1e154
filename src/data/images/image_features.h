// What image encoders that are not trained make of images: computed once, and then part of the micro-batches in place of the
// images' pixels (ImageEncoderConfig::cached).
//
//   ImageFeatures features;
//   features.add(/*set=*/0, open_or_make_example_activations(...));     // the rows of one encoder, of every image
//   sequences.read_features(std::make_shared<const ImageFeatures>(features));
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "data/batch/batch.h"
#include "data/examples/example_activations.h"

namespace brisk {

class ImageFeatures {
 public:
  // `set`: of which the rows are in a micro-batch.
  void add(int set, std::shared_ptr<const ExampleActivations> rows) { encoders_.push_back({set, std::move(rows)}); }
  // Of an image, when its rows are in all sets.
  void append(int64_t image, MicroBatch& batch) const {
    for (const Encoder& encoder : encoders_) {
      const std::span<const std::byte> rows = encoder.rows->of(image);
      std::vector<std::byte>& inputs = batch.sets[static_cast<size_t>(encoder.set)].inputs;
      inputs.insert(inputs.end(), rows.begin(), rows.end());
    }
  }

 private:
  struct Encoder {
    int set;
    std::shared_ptr<const ExampleActivations> rows;
  };
  std::vector<Encoder> encoders_;
};

}  // namespace brisk
