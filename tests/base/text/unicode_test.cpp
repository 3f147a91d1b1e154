#include "base/text/unicode.h"

#include <gtest/gtest.h>

namespace brisk {
namespace {

TEST(Unicode, DecodesEveryCodePointItEncodes) {
  for (uint32_t code_point = 0; code_point < 0x110000; ++code_point) {
    if (code_point >= 0xD800 && code_point < 0xE000) continue;  // surrogates are no characters
    std::string text;
    append_utf8(code_point, text);
    const CodePoint decoded = decode_utf8(text, 0);
    ASSERT_EQ(decoded.value, code_point);
    ASSERT_EQ(decoded.length, text.size());
    ASSERT_FALSE(find_invalid_utf8(text)) << code_point;
  }
}

TEST(Unicode, FindsTheFirstBadByte) {
  EXPECT_EQ(find_invalid_utf8(""), std::nullopt);
  EXPECT_EQ(find_invalid_utf8("plain text of more than eight bytes, then é and 😀"), std::nullopt);
  EXPECT_EQ(find_invalid_utf8("\xFF"), 0u);
  EXPECT_EQ(find_invalid_utf8("0123456789\x80"), 10u);
  EXPECT_EQ(find_invalid_utf8("caf\xE9 au lait"), 3u);      // Latin-1
  EXPECT_EQ(find_invalid_utf8("cut \xF0\x9F\x98"), 4u);     // an emoji without its last byte
  EXPECT_EQ(find_invalid_utf8("\xC0\xAF"), 0u);             // an overlong slash
  EXPECT_EQ(find_invalid_utf8("\xE0\x80\xAF"), 0u);         // and a longer one
  EXPECT_EQ(find_invalid_utf8("ok \xED\xA0\x80"), 3u);      // a surrogate
  EXPECT_EQ(find_invalid_utf8("ok \xF4\x90\x80\x80"), 3u);  // past U+10FFFF
  EXPECT_EQ(find_invalid_utf8("\xEF\xBB\xBFwith a byte order mark"), std::nullopt);
}

TEST(Unicode, KnowsLettersNumbersAndSpaces) {
  for (const uint32_t letter : {U'a', U'Z', U'ß', U'é', U'Ж', U'中', U'한', U'ا', U'あ', U'𝔸'}) {
    EXPECT_EQ(category_of(letter), Category::kLetter) << letter;
  }
  for (const uint32_t number : {U'0', U'9', U'½', U'²', U'Ⅷ', U'१', U'௧', U'𝟗'}) {
    EXPECT_EQ(category_of(number), Category::kNumber) << number;
  }
  for (const uint32_t space : {U' ', U'\t', U'\n', U'\r', U'\v', U'\f', U'\u00A0', U'\u2003', U'\u3000', U'\u2028'}) {
    EXPECT_EQ(category_of(space), Category::kSpace) << space;
  }
  EXPECT_EQ(category_of(0x85), Category::kSpace);
  for (const uint32_t other : {U'!', U'_', U'€', U'\u0301', U'😀', U'\u200B', U'\u200D'}) {
    EXPECT_EQ(category_of(other), Category::kOther) << other;
  }
  // The separators that str.isspace() counts and \s does not.
  for (uint32_t separator = 0x1C; separator <= 0x1F; ++separator) EXPECT_EQ(category_of(separator), Category::kOther);
  EXPECT_EQ(category_of(kInvalidCodePoint), Category::kOther);
  EXPECT_EQ(category_of(0x10FFFF), Category::kOther);
}

}  // namespace
}  // namespace brisk
