#include "text/unicode.h"

#include <cstring>
#include <memory>

namespace brisk {

namespace {

struct CodePointRange {
  uint32_t first, last;
};

#include "text/unicode_tables.inc"

constexpr uint32_t kCodePoints = 0x110000;

// Two bits per code point, 278 KB, unpacked from the ranges at first use: one load instead of a binary search.
class CategoryTable {
 public:
  CategoryTable() : packed_(std::make_unique<uint8_t[]>(kCodePoints / 4)) {
    for (const CodePointRange& range : kLetterRanges) fill(range, Category::kLetter);
    for (const CodePointRange& range : kNumberRanges) fill(range, Category::kNumber);
    for (const CodePointRange& range : kSpaceRanges) fill(range, Category::kSpace);
  }

  Category operator[](uint32_t code_point) const {
    return static_cast<Category>(packed_[code_point >> 2] >> (2 * (code_point & 3)) & 3);
  }

 private:
  void fill(const CodePointRange& range, Category category) {
    for (uint32_t code_point = range.first; code_point <= range.last; ++code_point) {
      packed_[code_point >> 2] |= static_cast<uint8_t>(static_cast<unsigned>(category) << (2 * (code_point & 3)));
    }
  }

  std::unique_ptr<uint8_t[]> packed_;
};

bool is_continuation(unsigned char byte) { return (byte & 0xC0) == 0x80; }

}  // namespace

CodePoint decode_utf8(std::string_view text, size_t at) {
  constexpr CodePoint kBad = {kInvalidCodePoint, 1};
  const auto* bytes = reinterpret_cast<const unsigned char*>(text.data()) + at;
  const size_t left = text.size() - at;
  const unsigned char lead = bytes[0];
  if (lead < 0x80) return {lead, 1};
  if (lead < 0xC2) return kBad;  // a continuation byte, or an overlong form of ASCII
  if (lead < 0xE0) {
    if (left < 2 || !is_continuation(bytes[1])) return kBad;
    return {(lead & 0x1Fu) << 6 | (bytes[1] & 0x3Fu), 2};
  }
  if (lead < 0xF0) {
    if (left < 3 || !is_continuation(bytes[1]) || !is_continuation(bytes[2])) return kBad;
    const uint32_t value = (lead & 0x0Fu) << 12 | (bytes[1] & 0x3Fu) << 6 | (bytes[2] & 0x3Fu);
    if (value < 0x800 || (value >= 0xD800 && value < 0xE000)) return kBad;
    return {value, 3};
  }
  if (lead < 0xF5) {
    if (left < 4 || !is_continuation(bytes[1]) || !is_continuation(bytes[2]) || !is_continuation(bytes[3])) return kBad;
    const uint32_t value =
        (lead & 0x07u) << 18 | (bytes[1] & 0x3Fu) << 12 | (bytes[2] & 0x3Fu) << 6 | (bytes[3] & 0x3Fu);
    if (value < 0x10000 || value >= kCodePoints) return kBad;
    return {value, 4};
  }
  return kBad;
}

void append_utf8(uint32_t code_point, std::string& out) {
  if (code_point < 0x80) {
    out += static_cast<char>(code_point);
    return;
  }
  if (code_point < 0x800) {
    out += static_cast<char>(0xC0 | code_point >> 6);
  } else {
    if (code_point < 0x10000) {
      out += static_cast<char>(0xE0 | code_point >> 12);
    } else {
      out += static_cast<char>(0xF0 | code_point >> 18);
      out += static_cast<char>(0x80 | (code_point >> 12 & 0x3F));
    }
    out += static_cast<char>(0x80 | (code_point >> 6 & 0x3F));
  }
  out += static_cast<char>(0x80 | (code_point & 0x3F));
}

std::optional<size_t> find_invalid_utf8(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    // Eight ASCII bytes at a time: most text is mostly that.
    uint64_t eight = 0;
    if (text.size() - at >= 8 && (std::memcpy(&eight, text.data() + at, 8), (eight & 0x8080808080808080ull) == 0)) {
      at += 8;
      continue;
    }
    const CodePoint code_point = decode_utf8(text, at);
    if (code_point.value == kInvalidCodePoint) return at;
    at += code_point.length;
  }
  return std::nullopt;
}

Category category_of(uint32_t code_point) {
  static const CategoryTable table;
  return code_point < kCodePoints ? table[code_point] : Category::kOther;
}

}  // namespace brisk
