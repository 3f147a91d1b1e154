// What a processor of Hugging Face does to an image, and the patches that an encoder reads of it.
//
//   const Image ready = process_image(read_image(path), input.processing, path);   // input.height x input.width
//   append_patches(ready, input, pixels);                                    // input.rows() rows of input.cols() bytes
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "image/image.h"
#include "image/image_input.h"

namespace brisk {

// An image that cannot be brought to the size is a UserError that begins with `name`.
Image process_image(const Image& image, const ImageProcessing& processing, const std::string& name);

// PIL's Image.resize: antialiased, and rounded to 8 bits after each of the two directions.
Image resize_image(const Image& image, int64_t height, int64_t width, Resampling resampling);

// `image` was processed.
void append_patches(const Image& image, const ImageInput& input, std::vector<uint8_t>& pixels);

}  // namespace brisk
