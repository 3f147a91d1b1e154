#include "image/image_file.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

#include "base/error.h"
#include "base/files/files.h"
#include "image/decoders.h"

namespace brisk {

namespace {

struct ImageDecoder {
  ImageFormat format;
  bool (*matches)(ImageBytes);
  ImageSize (*size)(ImageBytes);
  void (*decode)(ImageBytes, Image&);
};

constexpr ImageDecoder kDecoders[] = {{ImageFormat::png, is_png, png_size, decode_png},
                                      {ImageFormat::jpeg, is_jpeg, jpeg_size, decode_jpeg},
                                      {ImageFormat::webp, is_webp, webp_size, decode_webp},
                                      {ImageFormat::pnm, is_pnm, pnm_size, decode_pnm}};

// What a file that is none of these begins with.
std::string what_it_is(ImageBytes bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), std::min<size_t>(bytes.size(), 64));
  if (text.starts_with("GIF8")) return "a GIF image";
  if (text.starts_with("BM")) return "a BMP image";
  if (text.starts_with("II*") || text.starts_with(std::string_view("MM\0*", 4))) return "a TIFF image";
  if (text.starts_with("%PDF")) return "a PDF document";
  if (text.starts_with("<svg") || text.starts_with("<?xml")) return "an SVG image or other XML";
  if (text.starts_with("version https://git-lfs")) return "a pointer of Git LFS, whose file was not fetched";
  if (text.size() >= 12 && text.substr(4, 4) == "ftyp") return "an AVIF or HEIC image, or a film";
  return "no image";
}

const ImageDecoder& decoder_of(ImageBytes bytes, const std::string& name) {
  if (bytes.empty()) user_error("{}: the file is empty; expected an image (PNG, JPEG, WebP, PPM)", name);
  for (const ImageDecoder& decoder : kDecoders) {
    if (decoder.matches(bytes)) return decoder;
  }
  user_error("{}: it is {}; expected an image: PNG, JPEG, WebP, PPM or PGM; convert it, or leave it out", name,
             what_it_is(bytes));
}

ImageSize checked_size(const ImageDecoder& decoder, ImageBytes bytes, const std::string& name) {
  const ImageSize size = decoder.size(bytes);
  if (size.height < 1 || size.width < 1) {
    user_error("{}: an image of {} x {} pixels; expected at least one", name, size.width, size.height);
  }
  if (size.height > kMostImagePixels / size.width) {
    user_error("{}: an image of {} x {} pixels; brisk reads images of up to {} pixels; make it smaller", name,
               size.width, size.height, kMostImagePixels);
  }
  return size;
}

template <typename Body>
auto with_name(const std::string& name, const Body& body) {
  try {
    return body();
  } catch (const DecodeError& problem) {
    user_error("{}: the image cannot be read: {}; fetch or write the file again", name, std::string(problem.what()));
  } catch (const std::bad_alloc&) {
    user_error("{}: there is not enough memory to read the image; make it smaller", name);
  }
}

// The first bytes of a file, up to `most` of them.
std::vector<uint8_t> beginning_of_file(const std::string& path, int64_t most, int64_t& size) {
  struct Descriptor {
    int number;
    ~Descriptor() { ::close(number); }
  } const file{open_regular_file(path, &size)};
  if (size > kMostImageBytes) {
    user_error("{}: it has {} bytes; brisk reads image files of up to {}", path, size, kMostImageBytes);
  }
  std::vector<uint8_t> bytes(static_cast<size_t>(std::min(most, size)));
  size_t filled = 0;
  while (filled < bytes.size()) {
    const ssize_t count = ::read(file.number, bytes.data() + filled, bytes.size() - filled);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) user_error("{}: cannot be read: {}", path, explain_errno(errno));
    if (count == 0) break;
    filled += static_cast<size_t>(count);
  }
  bytes.resize(filled);
  return bytes;
}

constexpr int64_t kHeaderBytes = 4096;  // the most headers are within

}  // namespace

bool is_image_file(const std::string& path) {
  const size_t dot = path.rfind('.');
  if (dot == std::string::npos) return false;
  std::string extension = path.substr(dot + 1);
  for (char& c : extension) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  for (const char* known : {"png", "jpg", "jpeg", "webp", "ppm", "pgm", "pnm"}) {
    if (extension == known) return true;
  }
  return false;
}

ImageHeader image_header(std::span<const uint8_t> bytes, const std::string& name) {
  const ImageDecoder& decoder = decoder_of(bytes, name);
  const ImageSize size = with_name(name, [&] { return checked_size(decoder, bytes, name); });
  return {decoder.format, size.height, size.width};
}

Image decode_image(std::span<const uint8_t> bytes, const std::string& name) {
  const ImageDecoder& decoder = decoder_of(bytes, name);
  return with_name(name, [&] {
    const ImageSize size = checked_size(decoder, bytes, name);
    Image image;
    image.height = size.height;
    image.width = size.width;
    decoder.decode(bytes, image);
    return image;
  });
}

Image read_image(const std::string& path) {
  int64_t size = 0;
  return decode_image(beginning_of_file(path, kMostImageBytes, size), path);
}

ImageHeader read_image_header(const std::string& path) {
  int64_t size = 0;
  std::vector<uint8_t> bytes = beginning_of_file(path, kHeaderBytes, size);
  // That of a JPEG file may lie behind a colour profile, a preview or what a camera says.
  if (is_jpeg(bytes) && size > kHeaderBytes) {
    try {
      jpeg_size(bytes);
    } catch (const DecodeError&) {
      bytes = beginning_of_file(path, size, size);
    }
  }
  return image_header(bytes, path);
}

void write_ppm(const std::string& path, const Image& image) {
  std::string text = fmt::format("P6\n{} {}\n255\n", image.width, image.height);
  text.append(reinterpret_cast<const char*>(image.pixels.data()), image.pixels.size());
  write_file_atomically(path, text);
}

}  // namespace brisk
