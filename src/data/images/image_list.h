// Some images of a store without texts or labels, of which a trained model is asked for them: the row sets of
// data/images/image_sequences.h.
//
//   ImageList list(store, numbers, layout, ImageList::Asks::text);
#pragma once

#include <cstdint>
#include <span>

#include "data/batch/sequences.h"
#include "data/images/image_features.h"
#include "data/images/image_store.h"
#include "image/image_input.h"

namespace brisk {

class ImageList final : public Sequences {
 public:
  enum class Asks : uint8_t {
    text,  // set 1 has no rows
    label  // set 1 has a row of each, without a target
  };
  // Store, numbers, layout and features must outlive it. `features`: in place of pixels; none: images are read.
  ImageList(const ImageStore& store, std::span<const int64_t> images, const ImageLayout& layout, Asks asks,
            const ImageFeatures* features = nullptr)
      : store_(store), images_(images), layout_(layout), asks_(asks), features_(features) {}

  int64_t count() const override { return std::ssize(images_); }
  int sets() const override { return asks_ == Asks::label ? 1 : static_cast<int>(layout_.images.size()) + 1; }
  int64_t rows(int64_t index, int set) const override;
  LengthTotals totals(int set) const override;
  void append(int64_t index, int64_t epoch, int32_t sequence, MicroBatch& batch) const override;
  bool has_prefetch() const override { return true; }
  void prefetch(std::span<const int64_t> indices) const override;

 private:
  const ImageStore& store_;
  std::span<const int64_t> images_;
  const ImageLayout& layout_;
  Asks asks_;
  const ImageFeatures* features_;
};

}  // namespace brisk
