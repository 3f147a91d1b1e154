// Image files: PNG, JPEG, WebP (where its library is found when brisk runs), PPM and PGM.
//
//   const Image page = read_image("page.png");        // 8-bit RGB, as PIL's convert("RGB") gives it
//   const ImageHeader header = read_image_header("page.png");
//
// What is no such file, ends early, is empty or is too large is a UserError that names the file; its size is checked before
// anything is decoded. Alpha is dropped and no orientation (EXIF) is applied, as PIL and Hugging Face's processors do.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "image/image.h"

namespace brisk {

enum class ImageFormat : uint8_t { png, jpeg, webp, pnm };

struct ImageHeader {
  ImageFormat format = ImageFormat::png;
  int64_t height = 0, width = 0;
};

constexpr int64_t kMostImagePixels = 178'956'970;      // PIL's limit, against small files of endless pixels
constexpr int64_t kMostImageBytes = int64_t{1} << 30;  // of a file

// By its name: .png, .jpg, .jpeg, .webp, .ppm, .pgm, .pnm.
bool is_image_file(const std::string& path);

Image read_image(const std::string& path);
ImageHeader read_image_header(const std::string& path);

// The same for a file in memory; `name` is named in errors.
Image decode_image(std::span<const uint8_t> bytes, const std::string& name);
ImageHeader image_header(std::span<const uint8_t> bytes, const std::string& name);

// Writes a PPM file, which holds the pixels as they are: for tests and examples.
void write_ppm(const std::string& path, const Image& image);

}  // namespace brisk
