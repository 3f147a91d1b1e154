#include "data/images/image_list.h"

#include <vector>

#include "data/examples/pair_sequences.h"
#include "data/examples/text_frame.h"
#include "data/images/image_sequences.h"

namespace brisk {

int64_t ImageList::rows(int64_t /*index*/, int set) const {
  if (set == static_cast<int>(kTargetSet)) return asks_ == Asks::label ? 1 : 0;
  return layout_.images[set == 0 ? 0 : 1].rows();
}

LengthTotals ImageList::totals(int set) const {
  LengthTotals totals;
  for (int64_t i = 0; i < count(); ++i) totals.add(rows(i, set));
  return totals;
}

void ImageList::append(int64_t index, int64_t /*epoch*/, int32_t sequence, MicroBatch& batch) const {
  const int64_t image = images_[static_cast<size_t>(index)];
  const ImageStore::Images images = features_ != nullptr ? nullptr : store_.get(image);
  if (batch.sets.size() <= kTargetSet) batch.sets.resize(kTargetSet + 1);
  const auto append_rows_of = [&](size_t input, MicroBatch::Set& set) {
    if (images) {
      append_image_rows((*images)[input], layout_.images[input], sequence, set);
    } else {
      append_image_places(layout_.images[input], sequence, set);
    }
  };
  append_rows_of(0, batch.sets[0]);
  if (asks_ == Asks::label) {
    append_picked_first(batch, -1);
  } else {
    batch.sets[kTargetSet].end_sequence(0);
  }
  if (layout_.images.size() > 1) append_rows_of(1, batch.sets[2]);
  append_fixed_rows(layout_, sequence, batch);
  if (features_ != nullptr) features_->append(image, batch);
}

void ImageList::prefetch(std::span<const int64_t> indices) const {
  if (features_ != nullptr) return;
  std::vector<int64_t> numbers;
  for (const int64_t index : indices) numbers.push_back(images_[static_cast<size_t>(index)]);
  store_.prefetch(numbers);
}

}  // namespace brisk
