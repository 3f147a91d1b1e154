// How a model reads an image: what is done to it first (Hugging Face's preprocessor_config.json), and the rows of patches
// that an encoder takes.
//
//   ImageInput input{.height = 224, .width = 224, .patch = 16};
//   input.rows();   // 197: the class row and 14 x 14 patches, row by row from the top
//   input.cols();   // 768: a patch's pixels in the order of a convolution's weight (channel, y, x)
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "image/image.h"

namespace brisk {

// PIL's numbers, which the files have.
enum class Resampling : uint8_t { nearest = 0, lanczos = 1, bilinear = 2, bicubic = 3, box = 4, hamming = 5 };

// What is done to an image before a model reads it; the steps in their order. Everything is done to 8-bit pixels, as PIL
// does it; `mean` and `std` are applied last, where the model reads the pixels.
struct ImageProcessing {
  std::string type = "ViTImageProcessor";  // Hugging Face's name of these steps
  bool crop_margin = false;                // what is as bright as the paper around a page goes (Nougat)
  bool align_long_axis = false;            // rotated by 90 degrees where that makes the long sides agree (Donut)
  bool resize = true;                      // to height x width
  bool keep_aspect = false;                // ... or the shorter edge to the shorter of both, the other in proportion
  bool thumbnail = false;                  // then made smaller, in proportion, until it fits into height x width
  bool pad = false;                        // then in the middle of height x width, black around it
  bool center_crop = false;                // then the middle, crop_height x crop_width
  Resampling resampling = Resampling::bilinear;
  Resampling thumbnail_resampling = Resampling::bilinear;
  int64_t height = 224, width = 224;
  int64_t crop_height = 224, crop_width = 224;
  // (x / 255 - mean) / std, for each colour.
  std::array<float, kColors> mean = {0.5f, 0.5f, 0.5f}, std = {0.5f, 0.5f, 0.5f};

  // Of every image that was processed.
  int64_t output_height() const { return center_crop ? crop_height : height; }
  int64_t output_width() const { return center_crop ? crop_width : width; }
  uint64_t fingerprint() const;  // of what decides the pixels; not of mean and std
  bool operator==(const ImageProcessing&) const = default;
};

// How an encoder reads an image: as rows of patches.
struct ImageInput {
  int64_t height = 224, width = 224;  // after processing; multiples of `patch`
  int64_t patch = 16;
  bool class_row =
      true;  // a row before the patches' (the class token's): its pixels are 0, its token is 1; patches have token 0
  ImageProcessing processing;

  // An image of these sizes, resized to them.
  static ImageInput resized(int64_t height, int64_t width, int64_t patch, bool class_row,
                            Resampling resampling = Resampling::bilinear);
  // As a processor delivers it.
  static ImageInput of(const ImageProcessing& processing, int64_t patch, bool class_row);

  int64_t patches() const { return (height / patch) * (width / patch); }
  int64_t rows() const { return patches() + (class_row ? 1 : 0); }  // of an image
  int64_t cols() const { return kColors * patch * patch; }
  bool operator==(const ImageInput&) const = default;
};

// UserError, naming `where`, for sizes that are no whole number of patches or that the processing does not deliver.
void check_image_input(const ImageInput& input, const std::string& where);

// What the micro-batches of a model of images have (data/images/image_sequences.h).
struct ImageLayout {
  std::vector<ImageInput>
      images;  // one for each encoder: 1 or 2 (both read the same image file); none: a model of text
  std::vector<int64_t> fixed_rows;  // derived sets: rows that each sequence has in it

  bool empty() const { return images.empty(); }
  bool operator==(const ImageLayout&) const = default;
};

}  // namespace brisk
