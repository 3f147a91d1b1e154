#include "image/process.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "image/image_file.h"

namespace brisk {

namespace {

// The part of an image from a corner on; what is outside of it is black.
Image part_of(const Image& image, int64_t top, int64_t left, int64_t height, int64_t width) {
  Image part(height, width);
  const int64_t from = std::max<int64_t>(0, -left), to = std::min(width, image.width - left);
  for (int64_t y = std::max<int64_t>(0, -top); y < std::min(height, image.height - top) && from < to; ++y)
    std::copy_n(image.row(top + y) + (left + from) * kColors, (to - from) * kColors, part.row(y) + from * kColors);
  return part;
}

// A page without what is as bright as its paper on all four sides: brighter than 200 of 255, the darkest pixel counted as 0
// and the brightest as 255.
Image without_margin(const Image& image) {
  constexpr double kBright = 200;
  const int64_t count = image.height * image.width;
  std::vector<uint8_t> grey(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    const uint8_t* color = image.pixels.data() + i * kColors;
    grey[static_cast<size_t>(i)] =
        static_cast<uint8_t>((color[0] * 19595 + color[1] * 38470 + color[2] * 7471 + 0x8000) >> 16);  // ITU-R 601-2
  }
  const auto [darkest, brightest] = std::minmax_element(grey.begin(), grey.end());
  if (*darkest == *brightest) return image;
  std::array<bool, 256> is_ink = {};
  for (int value = *darkest; value <= *brightest; ++value)
    is_ink[static_cast<size_t>(value)] =
        static_cast<double>(value - *darkest) / static_cast<double>(*brightest - *darkest) * 255 < kBright;
  int64_t top = image.height, bottom = 0, left = image.width, right = 0;
  for (int64_t y = 0; y < image.height; ++y) {
    for (int64_t x = 0; x < image.width; ++x) {
      if (!is_ink[grey[static_cast<size_t>(y * image.width + x)]]) continue;
      top = std::min(top, y);
      bottom = std::max(bottom, y + 1);
      left = std::min(left, x);
      right = std::max(right, x + 1);
    }
  }
  return part_of(image, top, left, bottom - top, right - left);
}

Image rotated_clockwise(const Image& image) {
  Image rotated(image.width, image.height);
  for (int64_t y = 0; y < rotated.height; ++y) {
    for (int64_t x = 0; x < rotated.width; ++x)
      std::copy_n(image.row(image.height - 1 - x) + y * kColors, kColors, rotated.row(y) + x * kColors);
  }
  return rotated;
}

int64_t in_proportion(int64_t length, int64_t to, int64_t from) {
  return std::max<int64_t>(1, static_cast<int64_t>(static_cast<double>(length * to) / static_cast<double>(from)));
}

// The shorter edge as long as the shorter side that is asked for.
Image with_short_edge(const Image& image, int64_t edge, Resampling resampling, const std::string& name) {
  const bool upright = image.width <= image.height;
  const int64_t height = upright ? in_proportion(edge, image.height, image.width) : edge;
  const int64_t width = upright ? edge : in_proportion(edge, image.width, image.height);
  if (height > kMostImagePixels / width) {
    user_error(
        "{}: an image of {} x {} pixels would be resized to {} x {}, more than {} pixels; it is too long and narrow",
        name, image.width, image.height, width, height, kMostImagePixels);
  }
  return resize_image(image, height, width, resampling);
}

Image as_thumbnail(const Image& image, const ImageProcessing& processing) {
  int64_t height = std::min(image.height, processing.height), width = std::min(image.width, processing.width);
  if (height == image.height && width == image.width) return image;
  if (image.height > image.width) {
    width = in_proportion(image.width, height, image.height);
  } else if (image.width > image.height) {
    height = in_proportion(image.height, width, image.width);
  }
  return resize_image(image, height, width, processing.thumbnail_resampling);
}

}  // namespace

Image process_image(const Image& image, const ImageProcessing& processing, const std::string& name) {
  const int64_t height = processing.height, width = processing.width;
  Image now;
  const Image* at = &image;
  const auto becomes = [&](Image next) {
    now = std::move(next);
    at = &now;
  };
  if (processing.crop_margin) becomes(without_margin(*at));
  if (processing.align_long_axis &&
      ((width < height && at->width > at->height) || (width > height && at->width < at->height)))
    becomes(rotated_clockwise(*at));
  if (processing.resize && processing.keep_aspect) {
    becomes(with_short_edge(*at, std::min(height, width), processing.resampling, name));
  } else if (processing.resize) {
    becomes(resize_image(*at, height, width, processing.resampling));
  }
  if (processing.thumbnail) becomes(as_thumbnail(*at, processing));
  if (processing.pad) becomes(part_of(*at, -((height - at->height) / 2), -((width - at->width) / 2), height, width));
  if (processing.center_crop) {
    const int64_t over = at->height - processing.crop_height, wide = at->width - processing.crop_width;
    becomes(part_of(*at, over >= 0 ? over / 2 : -((1 - over) / 2), wide >= 0 ? wide / 2 : -((1 - wide) / 2),
                    processing.crop_height, processing.crop_width));
  }
  if (at->height != processing.output_height() || at->width != processing.output_width()) {
    user_error("{}: an image of {} x {} pixels stays {} x {} when it is processed, and the model reads {} x {}", name,
               image.width, image.height, at->width, at->height, processing.output_width(), processing.output_height());
  }
  return at == &image ? image : std::move(now);
}

void append_patches(const Image& image, const ImageInput& input, std::vector<uint8_t>& pixels) {
  BRISK_CHECK(image.height == input.height && image.width == input.width, "an image of {} x {}, expected {} x {}",
              image.height, image.width, input.height, input.width);
  const int64_t patch = input.patch;
  size_t at = pixels.size();
  pixels.resize(at + static_cast<size_t>(input.rows() * input.cols()), 0);
  if (input.class_row) at += static_cast<size_t>(input.cols());
  uint8_t* out = pixels.data() + at;
  for (int64_t top = 0; top < image.height; top += patch) {
    for (int64_t left = 0; left < image.width; left += patch, out += input.cols()) {
      for (int64_t y = 0; y < patch; ++y) {
        const uint8_t* from = image.row(top + y) + left * kColors;
        uint8_t* to = out + y * patch;
        for (int64_t x = 0; x < patch; ++x, from += kColors, ++to) {
          for (int64_t color = 0; color < kColors; ++color) to[color * patch * patch] = from[color];
        }
      }
    }
  }
}

}  // namespace brisk
