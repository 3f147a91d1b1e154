// What the micro-batches of a model of images look like (data/images/image_sequences.h has their row sets).
//
//   BatchLayout layout = image_text_layout(images, {.rows = 31.4, .longest = 128});
//   layout.least_rows(longest_of_sets(*sequences));
#pragma once

#include <cstdint>

#include "image/image_input.h"
#include "infer/forward/batch_layout.h"

namespace brisk {

// The texts of images: rows of one in the mean, and of the longest. Nothing: there are none, since they are to be written.
struct TargetRows {
  double rows = 0;
  int64_t longest = 0;
};
BatchLayout image_text_layout(const ImageLayout& images, const TargetRows& targets);

// Each image has one row with a label.
BatchLayout image_label_layout(const ImageLayout& images);

}  // namespace brisk
