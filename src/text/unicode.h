// As much of Unicode as splitting text into words takes: decoding UTF-8, and which code points are letters, numbers
// and white space.
//
//   CodePoint c = decode_utf8(text, at);          // c.value, c.length; a bad byte is kInvalid of length 1
//   category_of(c.value) == Category::kLetter
//   if (auto bad = find_invalid_utf8(text)) user_error("{}: byte {}: not UTF-8", path, *bad);
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace brisk {

inline constexpr uint32_t kInvalidCodePoint = 0xFFFFFFFF;

struct CodePoint {
  uint32_t value;  // kInvalidCodePoint where the bytes are no UTF-8
  size_t length;   // bytes taken, at least 1
};

// The code point that begins at text[at]; at < text.size(). Overlong forms, surrogates and values past U+10FFFF are
// invalid, as Unicode demands.
CodePoint decode_utf8(std::string_view text, size_t at);

void append_utf8(uint32_t code_point, std::string& out);

// The offset of the first byte that is no part of a valid UTF-8 character; nothing if all are.
std::optional<size_t> find_invalid_utf8(std::string_view text);

// The classes of the GPT-2 pattern: \p{L}, \p{N}, \s, and everything else.
enum class Category : uint8_t { kOther = 0, kLetter = 1, kNumber = 2, kSpace = 3 };

// kInvalidCodePoint is kOther.
Category category_of(uint32_t code_point);

}  // namespace brisk
