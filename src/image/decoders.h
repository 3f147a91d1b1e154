// The decoder of each format, for image_file.cpp. They are given whole files, and throw DecodeError with what is wrong in them.
#pragma once

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>

#include "image/image.h"
#include "image/image_file.h"

namespace brisk {

struct DecodeError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct ImageSize {
  int64_t height = 0, width = 0;
};

using ImageBytes = std::span<const uint8_t>;

// By the file's first bytes.
bool is_png(ImageBytes bytes);
bool is_jpeg(ImageBytes bytes);
bool is_webp(ImageBytes bytes);
bool is_pnm(ImageBytes bytes);

ImageSize png_size(ImageBytes bytes);
ImageSize jpeg_size(ImageBytes bytes);
ImageSize webp_size(ImageBytes bytes);
ImageSize pnm_size(ImageBytes bytes);

// `image` has the file's size.
void decode_png(ImageBytes bytes, Image& image);
void decode_jpeg(ImageBytes bytes, Image& image);
void decode_webp(ImageBytes bytes, Image& image);
void decode_pnm(ImageBytes bytes, Image& image);

// "" where libwebp is there, else why it is not.
const std::string& webp_missing();

}  // namespace brisk
