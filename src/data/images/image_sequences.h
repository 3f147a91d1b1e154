// Images with their texts or labels as sequences of a micro-batch. One sequence is one image:
//
//   set 0: the patches of the first encoder's input, pixels and all
//   set 1 (kTargetSet): the text as a decoder reads and predicts it, as PairSequences has it; or, of a label, one row that is
//          derived from set 0 (kPickedSet), with the label as target
//   set 2: the patches of the second encoder's input, where there are two
//   then the sets of ImageLayout::fixed_rows, each derived from set 0: position and tokens 0, 1, ... of each sequence
//
//   auto store = std::make_shared<const ImageStore>(rows.image_paths(), layout.images, options);
//   auto train = std::make_shared<const ImageTextSequences>(rows.examples, store, layout, frame, /*most_target_rows=*/1536);
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "data/batch/sequences.h"
#include "data/examples/pair_sequences.h"
#include "data/images/image_features.h"
#include "data/images/image_store.h"
#include "data/images/image_table.h"
#include "image/image_input.h"

namespace brisk {

// The number of the first set of ImageLayout::fixed_rows.
inline size_t first_fixed_set(const ImageLayout& layout) { return layout.images.size() + 1; }

// The patches of one more sequence in row set `set`; and their rows alone, whose pixels no one reads.
void append_image_rows(const Image& image, const ImageInput& input, int32_t sequence, MicroBatch::Set& set);
void append_image_places(const ImageInput& input, int32_t sequence, MicroBatch::Set& set);
// Its rows in the fixed sets; call it when all its other rows are there.
void append_fixed_rows(const ImageLayout& layout, int32_t sequence, MicroBatch& batch);

class ImageSequences : public Sequences {
 public:
  int64_t count() const override { return examples_.count(); }
  bool has_prefetch() const override { return true; }
  void prefetch(std::span<const int64_t> indices) const override;

  // From now on micro-batches have these in place of pixels, and no image is read. Before any of it is used by threads.
  void read_features(std::shared_ptr<const ImageFeatures> features) { features_ = std::move(features); }
  const ImageFeatures* features() const { return features_.get(); }

  const ExampleSet& examples() const { return examples_; }
  const ImageStore& store() const { return *store_; }
  const ImageLayout& layout() const { return layout_; }

 protected:
  ImageSequences(ExampleSet examples, std::shared_ptr<const ImageStore> store, ImageLayout layout);
  ImageStore::Images images(int64_t index) const { return store_->get(examples_.row_of(index)); }

  ExampleSet examples_;
  std::shared_ptr<const ImageStore> store_;  // of the rows of examples_.data()
  ImageLayout layout_;
  std::shared_ptr<const ImageFeatures> features_;  // none: images are read
};

class ImageTextSequences : public ImageSequences {
 public:
  // Texts that are too long lose their ends; the end token stays. fitting_image_texts() finds those.
  ImageTextSequences(ExampleSet examples, std::shared_ptr<const ImageStore> store, ImageLayout layout, PairFrame frame,
                     int64_t most_target_rows);

  int sets() const override { return static_cast<int>(layout_.images.size()) + 1; }
  int64_t rows(int64_t index, int set = 0) const override;
  LengthTotals totals(int set = 0) const override;
  void append(int64_t index, int64_t epoch, int32_t sequence, MicroBatch& batch) const override;

  const PairFrame& frame() const { return frame_; }
  int64_t most_target_rows() const { return most_target_rows_; }
  std::vector<TokenId> target_tokens(int64_t index) const;  // the text's, whole and without special ones

 private:
  int64_t target_text_tokens(int64_t index) const;  // that fit

  PairFrame frame_;  // of which the target's part is used
  int64_t most_target_rows_;
  LengthTotals target_totals_;
};

// Of texts that are longer than a target may be: how many there are, and the other rows, or all of them, to be cut.
struct FittingTexts {
  ExampleSet examples;
  int64_t too_long = 0;
};
FittingTexts fitting_image_texts(const ExampleSet& examples, const PairFrame& frame, int64_t most_target_rows,
                                 TooLong rule);

// For one encoder.
class ImageLabelSequences final : public ImageSequences {
 public:
  ImageLabelSequences(ExampleSet examples, std::shared_ptr<const ImageStore> store, ImageLayout layout);

  int64_t rows(int64_t index, int set = 0) const override;
  LengthTotals totals(int set = 0) const override;
  void append(int64_t index, int64_t epoch, int32_t sequence, MicroBatch& batch) const override;
};

}  // namespace brisk
