#include "image/image_input.h"

#include "base/error.h"
#include "base/hash.h"

namespace brisk {

uint64_t ImageProcessing::fingerprint() const {
  return hash_bytes(fmt::format(
      "{} {} {} {} {} {} {} {} {} {} {} {} {}", static_cast<int>(crop_margin), static_cast<int>(align_long_axis),
      static_cast<int>(resize), static_cast<int>(keep_aspect), static_cast<int>(thumbnail), static_cast<int>(pad),
      static_cast<int>(center_crop), static_cast<int>(resampling), static_cast<int>(thumbnail_resampling), height,
      width, center_crop ? crop_height : 0, center_crop ? crop_width : 0));
}

ImageInput ImageInput::resized(int64_t height, int64_t width, int64_t patch, bool class_row, Resampling resampling) {
  ImageProcessing processing;
  processing.height = height;
  processing.width = width;
  processing.resampling = resampling;
  return of(processing, patch, class_row);
}

ImageInput ImageInput::of(const ImageProcessing& processing, int64_t patch, bool class_row) {
  return {.height = processing.output_height(),
          .width = processing.output_width(),
          .patch = patch,
          .class_row = class_row,
          .processing = processing};
}

void check_image_input(const ImageInput& input, const std::string& where) {
  const auto& [height, width, patch, class_row, processing] = input;
  if (height < 1 || width < 1 || patch < 1 || height % patch != 0 || width % patch != 0) {
    user_error("{}: images of {} x {} in patches of {} x {}: both sides must be multiples of a patch's", where, height,
               width, patch, patch);
  }
  if (processing.output_height() != height || processing.output_width() != width) {
    user_error("{}: the model reads images of {} x {}, and their processing delivers {} x {} (height x width)", where,
               height, width, processing.output_height(), processing.output_width());
  }
}

}  // namespace brisk
