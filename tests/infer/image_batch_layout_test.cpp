#include "infer/forward/image_batch_layout.h"

#include <gtest/gtest.h>

namespace brisk {
namespace {

// 16 patches and a class row, 4 patches for a second encoder, a coarser grid of 4 and 3 queries.
const ImageLayout kImages = {{ImageInput::resized(32, 32, 8, true), ImageInput::resized(16, 16, 8, false)}, {4, 3}};

TEST(ImageTextLayout, HasRoomForWholeImagesInEverySet) {
  const BatchLayout layout = image_text_layout(kImages, {.rows = 5.5, .longest = 12});
  const std::vector<RowCapacity> sets = layout.capacities(layout.capacity(4 * 17 + 5, 17));
  ASSERT_EQ(sets.size(), 5u);
  EXPECT_EQ(sets[0].sequences, 4) << "of 17 rows each";
  EXPECT_EQ(sets[1].rows, 22);
  EXPECT_EQ(sets[2].rows, 4 * 4);
  EXPECT_EQ(sets[3].rows, 4 * 4);
  EXPECT_EQ(sets[4].rows, 4 * 3);
  EXPECT_EQ(layout.row_limits(sets[0]).size(), 3u) << "those with rows of their own";
}

TEST(ImageTextLayout, HoldsTheLongestTextOfOneImage) {
  const BatchLayout layout = image_text_layout(kImages, {.rows = 2, .longest = 40});
  EXPECT_EQ(layout.capacities(layout.capacity(17, 17))[1].rows, 40);
  const std::vector<int64_t> longest = {17, 40, 4};
  EXPECT_EQ(layout.least_rows(longest), 17);
}

TEST(ImageLabelLayout, HasARowForEachImage) {
  const BatchLayout layout = image_label_layout({{kImages.images.front()}, {}});
  const std::vector<RowCapacity> sets = layout.capacities(layout.capacity(100, 17));
  ASSERT_EQ(sets.size(), 2u);
  EXPECT_EQ(sets[1].rows, 5);
  EXPECT_EQ(layout.others.front().derived_from, 0);
}

}  // namespace
}  // namespace brisk
