// A set of characters as a regular expression writes one: ranges, categories, \s, \w, other sets, negated or not.
//
//   CharacterClass letters;
//   letters.items.push_back({.kind = CharacterClass::Kind::kCategories, .categories = kLetters});
//   letters.finish();
//   letters.contains('x')
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/text/unicode.h"

namespace brisk {

class CharacterClass {
 public:
  enum class Kind : uint8_t { kRange, kCategories, kSpace, kWord, kSetWord, kClass };  // kSetWord: \w inside [...]

  struct Item {
    Kind kind = Kind::kRange;
    bool negated = false;
    uint32_t first = 0, last = 0;
    CategorySet categories = 0;
    std::shared_ptr<const CharacterClass> nested;
  };

  std::vector<Item> items;
  bool negated = false;
  bool ignores_case = false;
  std::shared_ptr<const CharacterClass> also_in;  // `[a&&b]`: a character is in both

  // To be called once all is said: sorts the ranges and fills the table for ASCII.
  void finish();

  // A byte that is not UTF-8 (kInvalidCodePoint) is in no range and in no category, so it is in a negated class.
  bool contains(uint32_t code_point) const {
    return code_point < 128 ? ascii_[code_point] : contains_slowly(code_point);
  }

 private:
  bool contains_slowly(uint32_t code_point) const;
  bool items_contain(uint32_t code_point) const;
  void join_items();

  struct Range {
    uint32_t first, last;
  };
  std::vector<Range> ranges_;  // those of `items`, sorted and joined

  std::array<bool, 128> ascii_{};
};

// The characters that are the same as this one when case is ignored, itself among them.
std::vector<uint32_t> case_variants(uint32_t code_point);

}  // namespace brisk
