#include "base/text/unicode.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <span>

namespace brisk {

namespace {

using enum GeneralCategory;

struct CodePointRange {
  uint32_t first, last;
};

struct CategoryRange {
  uint32_t first, last;
  GeneralCategory category;
};

struct LowercaseRange {
  uint32_t first, last;
  uint32_t stride;
  int32_t distance;
};

#include "base/text/unicode_tables.inc"

// A byte per code point, unpacked from the ranges at first use: one load instead of a binary search.
class PropertyTable {
 public:
  static constexpr uint8_t kCategoryBits = 0x1F, kSpace = 0x20, kPunctuation = 0x40, kMark = 0x80;

  PropertyTable() : properties_(std::make_unique<uint8_t[]>(kCodePoints)) {
    for (const CategoryRange& range : kCategoryRanges)
      mark({range.first, range.last}, static_cast<uint8_t>(range.category));
    for (const CodePointRange& range : kSpaceRanges) mark(range, kSpace);
    for (const CodePointRange& range : kLibraryPunctuationRanges) mark(range, kPunctuation);
    for (const CodePointRange& range : kLibraryMarkRanges) mark(range, kMark);
  }

  uint8_t operator[](uint32_t code_point) const { return properties_[code_point]; }

 private:
  void mark(const CodePointRange& range, uint8_t bits) {
    for (uint32_t code_point = range.first; code_point <= range.last; ++code_point) properties_[code_point] |= bits;
  }

  std::unique_ptr<uint8_t[]> properties_;
};

bool is_among(std::span<const CodePointRange> ranges, uint32_t code_point) {
  const auto range = std::ranges::lower_bound(ranges, code_point, {}, &CodePointRange::last);
  return range != ranges.end() && code_point >= range->first;
}

const PropertyTable& properties() {
  static const PropertyTable table;
  return table;
}

bool has_property(uint32_t code_point, uint8_t bit) {
  return code_point < kCodePoints && (properties()[code_point] & bit) != 0;
}

// The class of GPT-2's pattern for a byte of the table without its two upper bits.
constexpr std::array<Category, 64> kPatternCategories = [] {
  std::array<Category, 64> categories{};
  for (int category = 0; category < kGeneralCategories; ++category) {
    if (kLetters >> category & 1) categories[category] = Category::kLetter;
    if (kNumbers >> category & 1) categories[category] = Category::kNumber;
  }
  for (int i = 32; i < 64; ++i) categories[i] = Category::kSpace;
  return categories;
}();

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

bool is_in(uint32_t code_point, CategorySet categories) {
  return code_point < kCodePoints && (categories >> (properties()[code_point] & PropertyTable::kCategoryBits) & 1) != 0;
}

bool is_white_space(uint32_t code_point) { return has_property(code_point, PropertyTable::kSpace); }

bool is_word_character(uint32_t code_point, WordRule rule) {
  constexpr CategorySet kWord = kLetters | kMarks | category_set(Nd, Nl, Pc);
  if (is_in(code_point, kWord)) return true;
  if (rule != WordRule::kRust && (code_point == 0x200C || code_point == 0x200D)) return false;
  if (rule == WordRule::kOniguruma && code_point < 0x100 && is_in(code_point, kNumbers)) return true;
  return is_among(kOtherWordRanges, code_point);
}

bool is_library_punctuation(uint32_t code_point) { return has_property(code_point, PropertyTable::kPunctuation); }

bool is_library_mark(uint32_t code_point) { return has_property(code_point, PropertyTable::kMark); }

bool is_bert_mark(uint32_t code_point) { return is_among(kBertMarkRanges, code_point); }

bool is_bert_control(uint32_t code_point) { return is_among(kBertControlRanges, code_point); }

bool is_bert_chinese(uint32_t c) {
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) || (c >= 0x20000 && c <= 0x2A6DF) ||
         (c >= 0x2A700 && c <= 0x2B73F) || (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

uint32_t lowercase_of(uint32_t code_point) {
  if (code_point < 0x80) return code_point >= 'A' && code_point <= 'Z' ? code_point + 32 : code_point;
  if (code_point == 0x130) return 'i';
  const auto* range = std::ranges::lower_bound(kLowercaseRanges, code_point, {}, &LowercaseRange::last);
  if (range == std::end(kLowercaseRanges) || code_point < range->first) return code_point;
  if ((code_point - range->first) % range->stride != 0) return code_point;
  return code_point + static_cast<uint32_t>(range->distance);
}

Category category_of(uint32_t code_point) {
  return code_point < kCodePoints ? kPatternCategories[properties()[code_point] & 0x3F] : Category::kOther;
}

}  // namespace brisk
