#include "infer/forward/image_batch_layout.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace brisk {

namespace {

BatchLayout layout_of(const ImageLayout& images, BatchLayout::Set targets) {
  BRISK_CHECK(!images.empty(), "a model that reads no images");
  BatchLayout layout;
  layout.rows_of_sequence = images.images.front().rows();
  layout.others.push_back(std::move(targets));
  for (size_t i = 1; i < images.images.size(); ++i) {
    const int64_t rows = images.images[i].rows();
    layout.others.push_back({[rows](const RowCapacity& first) {
      return RowCapacity{first.sequences * rows, first.sequences, rows};
    }});
  }
  for (const int64_t rows : images.fixed_rows) layout.others.push_back(fixed_rows_set(rows));
  return layout;
}

}  // namespace

BatchLayout image_text_layout(const ImageLayout& images, const TargetRows& targets) {
  return layout_of(images, {[targets](const RowCapacity& first) {
                     const double rows = std::ceil(targets.rows * static_cast<double>(first.sequences));
                     const int64_t longest = std::max<int64_t>(1, targets.longest);
                     return RowCapacity{std::max(static_cast<int64_t>(rows), longest), first.sequences, longest};
                   }});
}

BatchLayout image_label_layout(const ImageLayout& images) {
  return layout_of(images, {[](const RowCapacity& first) {
                              return RowCapacity{first.sequences, first.sequences, 1};
                            },
                            0});
}

}  // namespace brisk
