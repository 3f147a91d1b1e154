#include "text/regex/character_class.h"

#include <algorithm>
#include <unordered_map>

namespace brisk {

namespace {

uint32_t folded(uint32_t code_point) {
  constexpr uint32_t kLongS = 0x17F;  // its capital is S, though it has no lower case other than itself
  return code_point == kLongS ? 's' : lowercase_of(code_point);
}

}  // namespace

std::vector<uint32_t> case_variants(uint32_t code_point) {
  static const auto groups = [] {
    constexpr uint32_t kEndOfCased = 0x1F000;
    std::unordered_map<uint32_t, std::vector<uint32_t>> by_folded;
    for (uint32_t c = 0; c < kEndOfCased; ++c) {
      if (const uint32_t fold = folded(c); fold != c) by_folded[fold].push_back(c);
    }
    for (auto& [fold, group] : by_folded) group.push_back(fold);
    return by_folded;
  }();
  const auto group = groups.find(folded(code_point));
  return group == groups.end() ? std::vector<uint32_t>{code_point} : group->second;
}

bool CharacterClass::items_contain(uint32_t code_point) const {
  const auto above = std::ranges::upper_bound(ranges_, code_point, {}, &Range::first);
  if (above != ranges_.begin() && code_point <= (above - 1)->last) return true;
  return std::ranges::any_of(items, [&](const Item& item) {
    bool found = false;
    switch (item.kind) {
      case Kind::kRange: found = code_point >= item.first && code_point <= item.last; break;
      case Kind::kCategories: found = is_in(code_point, item.categories); break;
      case Kind::kSpace: found = is_white_space(code_point); break;
      case Kind::kWord: found = is_word_character(code_point, WordRule::kOniguruma); break;
      case Kind::kSetWord: found = is_word_character(code_point, WordRule::kOnigurumaSet); break;
      case Kind::kClass: found = item.nested->contains(code_point); break;
    }
    return found != item.negated;
  });
}

// A set may be written with thousands of ranges; a character must not be compared with each.
void CharacterClass::join_items() {
  std::vector<Item> joined;
  for (const Item& item : items) {
    if (item.kind == Kind::kRange && !item.negated) {
      ranges_.push_back({item.first, item.last});
      continue;
    }
    const auto same = std::ranges::find_if(
        joined, [&](const Item& other) { return other.kind == item.kind && other.negated == item.negated; });
    if (same == joined.end() || item.kind == Kind::kRange || item.kind == Kind::kClass) {
      joined.push_back(item);
    } else if (item.kind == Kind::kCategories) {  // not in one or not in the other: not in both
      same->categories = item.negated ? same->categories & item.categories : same->categories | item.categories;
    }
  }
  items = std::move(joined);
  std::ranges::sort(ranges_, {}, &Range::first);
  size_t kept = 0;
  for (const Range& range : ranges_) {
    if (kept > 0 && range.first <= ranges_[kept - 1].last) {
      ranges_[kept - 1].last = std::max(ranges_[kept - 1].last, range.last);
    } else {
      ranges_[kept++] = range;
    }
  }
  ranges_.resize(kept);
}

bool CharacterClass::contains_slowly(uint32_t code_point) const {
  bool found = items_contain(code_point);
  if (!found && ignores_case && code_point < kCodePoints) {
    found = std::ranges::any_of(case_variants(code_point), [&](uint32_t variant) { return items_contain(variant); });
  }
  if (found && also_in) found = also_in->contains(code_point);
  return found != negated;
}

void CharacterClass::finish() {
  join_items();
  for (uint32_t code_point = 0; code_point < 128; ++code_point) ascii_[code_point] = contains_slowly(code_point);
}

}  // namespace brisk
