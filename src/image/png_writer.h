// An image as the bytes of a PNG file, grey where it has no colours: for pages that show it.
//
//   const std::string bytes = png_bytes(resize_image(image, 60, 480, Resampling::bilinear));
#pragma once

#include <string>

#include "image/image.h"

namespace brisk {

std::string png_bytes(const Image& image);

}  // namespace brisk
