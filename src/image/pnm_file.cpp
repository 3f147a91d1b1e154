#include <fmt/format.h>

#include <algorithm>

#include "image/decoders.h"

namespace brisk {

namespace {

// The numbers of a PNM file: text, with comments from # to the end of the line.
class PnmText {
 public:
  explicit PnmText(ImageBytes bytes) : bytes_(bytes) {}

  int64_t number(int64_t most) {
    while (at_ < bytes_.size() && (is_space(bytes_[at_]) || bytes_[at_] == '#')) {
      if (bytes_[at_] == '#') {
        while (at_ < bytes_.size() && bytes_[at_] != '\n' && bytes_[at_] != '\r') ++at_;
      } else {
        ++at_;
      }
    }
    if (at_ == bytes_.size()) throw DecodeError("the file ends early");
    if (!is_digit(bytes_[at_])) throw DecodeError(fmt::format("byte {} is no part of a number", at_ + 1));
    int64_t number = 0;
    for (; at_ < bytes_.size() && is_digit(bytes_[at_]); ++at_) {
      number = 10 * number + bytes_[at_] - '0';
      if (number > most) throw DecodeError(fmt::format("a number above {} at byte {}", most, at_ + 1));
    }
    return number;
  }
  // Behind the one space that ends the header.
  size_t end_of_header() {
    if (at_ == bytes_.size() || !is_space(bytes_[at_])) throw DecodeError("it ends within its header");
    return at_ + 1;
  }

 private:
  static bool is_space(uint8_t byte) { return byte == ' ' || (byte >= '\t' && byte <= '\r'); }
  static bool is_digit(uint8_t byte) { return byte >= '0' && byte <= '9'; }

  ImageBytes bytes_;
  size_t at_ = 2;  // behind the magic number
};

constexpr int64_t kMostSide = INT32_MAX, kMostValue = 65535;

}  // namespace

bool is_pnm(ImageBytes bytes) {
  if (bytes.size() < 3 || bytes[0] != 'P' ||
      (bytes[2] != '#' && bytes[2] != ' ' && (bytes[2] < '\t' || bytes[2] > '\r')))
    return false;
  return bytes[1] == '2' || bytes[1] == '3' || bytes[1] == '5' || bytes[1] == '6';
}

ImageSize pnm_size(ImageBytes bytes) {
  PnmText text(bytes);
  const int64_t width = text.number(kMostSide);
  return {text.number(kMostSide), width};
}

void decode_pnm(ImageBytes bytes, Image& image) {
  PnmText text(bytes);
  text.number(kMostSide);
  text.number(kMostSide);
  const int64_t most = text.number(kMostValue);
  if (most == 0) throw DecodeError("its largest value is 0");
  const bool in_text = bytes[1] < '5', grey = bytes[1] == '2' || bytes[1] == '5';
  const int64_t values = image.height * image.width * (grey ? 1 : kColors), width = most > 255 ? 2 : 1;
  size_t at = text.end_of_header();
  const auto left = static_cast<int64_t>(bytes.size() - at);
  if (in_text ? left < 2 * values - 1 : left < values * width) {
    throw DecodeError(fmt::format("the file ends early: {} bytes for {} x {} pixels", left, image.width, image.height));
  }
  image.pixels.resize(static_cast<size_t>(image.height * image.width * kColors));
  uint8_t* out = image.pixels.data();
  for (int64_t i = 0; i < values; ++i) {
    int64_t value = 0;
    if (in_text) {
      value = text.number(kMostValue);
    } else {
      value = bytes[at++];
      if (width == 2) value = value << 8 | bytes[at++];
    }
    value = std::min(value, most);
    const auto scaled = static_cast<uint8_t>(most == 255 ? value : (value * 255 + most / 2) / most);
    for (int copy = 0; copy < (grey ? kColors : 1); ++copy) *out++ = scaled;
  }
}

}  // namespace brisk
