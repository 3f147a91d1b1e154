#include "image/png_writer.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

#ifdef BRISK_HAVE_ZLIB
#include <zlib.h>
#endif

namespace brisk {

namespace {

void put_number(std::string& out, uint32_t number) {
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(number >> shift);
}

uint32_t crc_of(std::string_view bytes) {
  uint32_t crc = 0xFFFFFFFF;
  for (const char c : bytes) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xEDB88320 : 0);
  }
  return ~crc;
}

void put_chunk(std::string& out, std::string_view kind, std::string_view bytes) {
  put_number(out, static_cast<uint32_t>(bytes.size()));
  const std::string content = std::string(kind) + std::string(bytes);
  out += content;
  put_number(out, crc_of(content));
}

#ifdef BRISK_HAVE_ZLIB
std::string deflated(const std::string& bytes) {
  uLongf size = compressBound(bytes.size());
  std::string out(size, '\0');
  compress(reinterpret_cast<Bytef*>(out.data()), &size, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
  out.resize(size);
  return out;
}
#else
// Blocks that are not compressed.
std::string deflated(const std::string& bytes) {
  constexpr size_t kMost = 65535;
  std::string out = "\x78\x01";
  for (size_t begin = 0; begin < bytes.size(); begin += kMost) {
    const size_t size = std::min(kMost, bytes.size() - begin);
    out += begin + size == bytes.size() ? '\1' : '\0';
    for (const size_t number : {size, ~size}) {
      out += static_cast<char>(number);
      out += static_cast<char>(number >> 8);
    }
    out.append(bytes, begin, size);
  }
  uint32_t a = 1, b = 0;
  for (const char c : bytes) {
    a = (a + static_cast<unsigned char>(c)) % 65521;
    b = (b + a) % 65521;
  }
  put_number(out, b << 16 | a);
  return out;
}
#endif

}  // namespace

std::string png_bytes(const Image& image) {
  bool grey = true;
  for (size_t i = 0; i < image.pixels.size() && grey; i += kColors)
    grey = image.pixels[i] == image.pixels[i + 1] && image.pixels[i] == image.pixels[i + 2];
  std::string header, rows;
  put_number(header, static_cast<uint32_t>(image.width));
  put_number(header, static_cast<uint32_t>(image.height));
  header += '\x08';                  // bits
  header += grey ? '\x00' : '\x02';  // colours
  header += std::string(3, '\0');    // the only compression, the only filters, not interlaced
  for (int64_t y = 0; y < image.height; ++y) {
    rows += '\0';  // no filter
    const uint8_t* row = image.row(y);
    for (int64_t i = 0; i < image.width * kColors; i += grey ? kColors : 1) rows += static_cast<char>(row[i]);
  }
  std::string png = "\x89PNG\r\n\x1a\n";
  put_chunk(png, "IHDR", header);
  put_chunk(png, "IDAT", deflated(rows));
  put_chunk(png, "IEND", "");
  return png;
}

}  // namespace brisk
