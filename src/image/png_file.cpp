#include <fmt/format.h>

#include <algorithm>
#include <csetjmp>
#include <cstring>
#include <memory>
#include <vector>

#include "image/decoders.h"

#if BRISK_HAVE_PNG
#include <png.h>
#endif

namespace brisk {

namespace {

constexpr uint8_t kPngSignature[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};
constexpr size_t kPngHeaderEnd = 26;  // signature, length and name of IHDR, width, height, depth, colour

int64_t big_endian_32(const uint8_t* bytes) {
  return int64_t{bytes[0]} << 24 | int64_t{bytes[1]} << 16 | int64_t{bytes[2]} << 8 | int64_t{bytes[3]};
}

}  // namespace

bool is_png(ImageBytes bytes) {
  return bytes.size() >= sizeof kPngSignature && std::memcmp(bytes.data(), kPngSignature, sizeof kPngSignature) == 0;
}

ImageSize png_size(ImageBytes bytes) {
  if (bytes.size() < kPngHeaderEnd) throw DecodeError("it ends within its header");
  if (std::memcmp(bytes.data() + 12, "IHDR", 4) != 0) throw DecodeError("a PNG file without a header (IHDR)");
  return {big_endian_32(bytes.data() + 20), big_endian_32(bytes.data() + 16)};
}

#if BRISK_HAVE_PNG

namespace {

// libpng leaves a function that fails by longjmp, past whatever is on the stack in between: so nothing there has a
// destructor, and what is to be freed is held by decode_png().
struct PngReading {
  png_structp png = nullptr;
  png_infop info = nullptr;
  const uint8_t* at = nullptr;
  size_t left = 0;
  png_bytepp rows = nullptr;
  char problem[200] = {};

  ~PngReading() {
    if (png != nullptr) png_destroy_read_struct(&png, &info, nullptr);
  }
};

void read_png_bytes(png_structp png, png_bytep to, size_t count) {
  auto& reading = *static_cast<PngReading*>(png_get_io_ptr(png));
  if (count > reading.left) png_error(png, "the file ends early");
  std::memcpy(to, reading.at, count);
  reading.at += count;
  reading.left -= count;
}

[[noreturn]] void png_failed(png_structp png, png_const_charp problem) {
  auto& reading = *static_cast<PngReading*>(png_get_error_ptr(png));
  std::snprintf(reading.problem, sizeof reading.problem, "%s", problem);
  png_longjmp(png, 1);
}

// Calls what may fail; false where it did.
template <typename Step>
bool try_png(PngReading& reading, Step step) {
  if (setjmp(png_jmpbuf(reading.png)) != 0) return false;
  step(reading);
  return true;
}

void open_png(PngReading& reading) {
  png_set_read_fn(reading.png, &reading, read_png_bytes);
  png_set_crc_action(reading.png, PNG_CRC_ERROR_QUIT, PNG_CRC_WARN_DISCARD);
  png_set_chunk_cache_max(reading.png, 1000);
  png_set_chunk_malloc_max(reading.png, 8'000'000);
  png_set_user_limits(reading.png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);  // checked before
  png_read_info(reading.png, reading.info);
  const int color = png_get_color_type(reading.png, reading.info), depth = png_get_bit_depth(reading.png, reading.info);
  if (depth == 16) png_set_strip_16(reading.png);
  if (color == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(reading.png);
  if (color == PNG_COLOR_TYPE_GRAY && depth < 8) png_set_expand_gray_1_2_4_to_8(reading.png);
  if (color == PNG_COLOR_TYPE_GRAY || color == PNG_COLOR_TYPE_GRAY_ALPHA) png_set_gray_to_rgb(reading.png);
  png_set_strip_alpha(reading.png);  // also that of a palette
  png_set_interlace_handling(reading.png);
  png_read_update_info(reading.png, reading.info);
}

void read_png_rows(PngReading& reading) { png_read_image(reading.png, reading.rows); }

}  // namespace

void decode_png(ImageBytes bytes, Image& image) {
  // A byte of a file stands for 1,032 at most: so a small file that claims to be huge is refused before memory is taken.
  const auto bits =
      static_cast<double>(bytes[24]) * static_cast<double>(image.width) * static_cast<double>(image.height);
  if (bits / 8 > 1032.0 * static_cast<double>(bytes.size())) {
    throw DecodeError(fmt::format("{} bytes are too few for {} x {} pixels", bytes.size(), image.width, image.height));
  }
  image.pixels.resize(static_cast<size_t>(image.height * image.width * kColors));
  std::vector<png_bytep> rows;
  for (int64_t y = 0; y < image.height; ++y) rows.push_back(image.row(y));
  PngReading reading;
  reading.at = bytes.data();
  reading.left = bytes.size();
  reading.rows = rows.data();
  reading.png =
      png_create_read_struct(PNG_LIBPNG_VER_STRING, &reading, png_failed, [](png_structp, png_const_charp) {});
  if (reading.png != nullptr) reading.info = png_create_info_struct(reading.png);
  if (reading.info == nullptr) throw std::bad_alloc();
  if (!try_png(reading, open_png)) throw DecodeError(reading.problem);
  if (png_get_rowbytes(reading.png, reading.info) != static_cast<size_t>(image.width * kColors)) {
    throw DecodeError("a PNG file of an unknown kind of colour");
  }
  if (!try_png(reading, read_png_rows)) throw DecodeError(reading.problem);
}

#else

void decode_png(ImageBytes, Image&) {
  throw DecodeError("brisk was built without libpng and reads no PNG; convert it to PPM, or build with libpng-dev");
}

#endif

}  // namespace brisk
