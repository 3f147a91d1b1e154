// The parts of Unicode that tokenizers need: UTF-8, general categories of code points and classes derived from them.
//
//   CodePoint c = decode_utf8(text, at);          // c.value, c.length; an invalid byte is kInvalidCodePoint of length 1
//   category_of(c.value) == Category::kLetter     // the four classes of GPT-2's pattern
//   is_in(c.value, kLetters)                      // a set of general categories
//   if (auto bad = find_invalid_utf8(text)) user_error("{}: byte {}: not UTF-8", path, *bad);
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace brisk {

inline constexpr uint32_t kCodePoints = 0x110000;
inline constexpr uint32_t kInvalidCodePoint = 0xFFFFFFFF;

struct CodePoint {
  uint32_t value;  // kInvalidCodePoint if the bytes are not UTF-8
  size_t length;   // bytes taken, at least 1
};

// The code point that begins at text[at]; at < text.size(). Overlong forms, surrogates and values past U+10FFFF are
// invalid, as Unicode requires.
CodePoint decode_utf8(std::string_view text, size_t at);

void append_utf8(uint32_t code_point, std::string& out);

// The offset of the first byte that is not part of a valid UTF-8 character, if there is one.
std::optional<size_t> find_invalid_utf8(std::string_view text);

// The two-letter categories of Unicode.
enum class GeneralCategory : uint8_t {
  Cn,
  Cc,
  Cf,
  Co,
  Cs,
  Ll,
  Lm,
  Lo,
  Lt,
  Lu,
  Mc,
  Me,
  Mn,
  Nd,
  Nl,
  No,
  Pc,
  Pd,
  Pe,
  Pf,
  Pi,
  Po,
  Ps,
  Sc,
  Sk,
  Sm,
  So,
  Zl,
  Zp,
  Zs
};  // clang-format would give each a line
inline constexpr int kGeneralCategories = 30;

// A set of general categories, one bit each.
using CategorySet = uint32_t;
template <typename... Categories>
constexpr CategorySet category_set(Categories... categories) {
  return (... | (CategorySet{1} << static_cast<unsigned>(categories)));
}
inline constexpr CategorySet kLetters = category_set(GeneralCategory::Ll, GeneralCategory::Lm, GeneralCategory::Lo,
                                                     GeneralCategory::Lt, GeneralCategory::Lu);
inline constexpr CategorySet kNumbers = category_set(GeneralCategory::Nd, GeneralCategory::Nl, GeneralCategory::No);
inline constexpr CategorySet kMarks = category_set(GeneralCategory::Mc, GeneralCategory::Me, GeneralCategory::Mn);

// kInvalidCodePoint belongs to no category, Cn included, and all of the following are false for it.
bool is_in(uint32_t code_point, CategorySet categories);
bool is_white_space(uint32_t code_point);

// What \w matches. The two regex engines of the tokenizers library differ: `kRust` (Whitespace, single_word) includes the
// joiners U+200C and U+200D; `kOniguruma` (Split) does not, but includes the superscript digits and fractions of
// Latin-1, except inside [...], which is `kOnigurumaSet`.
enum class WordRule { kRust, kOniguruma, kOnigurumaSet };
bool is_word_character(uint32_t code_point, WordRule rule);

// What the library's Punctuation splits at; its table is of an older Unicode version than the categories here.
bool is_library_punctuation(uint32_t code_point);
// What its StripAccents removes, and what its BertNormalizer removes as accents and as control characters.
bool is_library_mark(uint32_t code_point);
bool is_bert_mark(uint32_t code_point);
bool is_bert_control(uint32_t code_point);
// What BertNormalizer puts spaces around: Chinese characters, except those added to Unicode since.
bool is_bert_chinese(uint32_t code_point);

// The lower case of a code point; only U+0130 has two ('i' and U+0307), of which this is the first.
uint32_t lowercase_of(uint32_t code_point);

// The classes of the GPT-2 pattern: \p{L}, \p{N}, \s, and everything else.
enum class Category : uint8_t { kOther = 0, kLetter = 1, kNumber = 2, kSpace = 3 };

// kInvalidCodePoint is kOther.
Category category_of(uint32_t code_point);

}  // namespace brisk
