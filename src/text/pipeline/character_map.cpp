#include "text/pipeline/character_map.h"

#include <cstring>

#include "base/error.h"
#include "base/text/unicode.h"
#include "text/unicode/graphemes.h"

namespace brisk {

namespace {

// A unit of darts-clone: a byte to compare, where the node's children are, and whether it is the end of a key. The end's own
// unit has the upper bit and a value, here the place of a text.
constexpr uint32_t kIsEnd = uint32_t{1} << 31;
bool has_end(uint32_t unit) { return (unit >> 8 & 1) != 0; }
uint32_t label(uint32_t unit) { return unit & (kIsEnd | 0xFF); }
uint32_t children(uint32_t unit) { return (unit >> 10) << ((unit & (1u << 9)) >> 6); }
uint32_t value(uint32_t unit) { return unit & ~kIsEnd; }

// Longer keys are not looked for, so that no file makes a text take quadratic time; those of real maps have 20 bytes.
constexpr size_t kLongestKey = 1024;

}  // namespace

CharacterMap::CharacterMap(std::string bytes, const std::string& place) : bytes_(std::move(bytes)) {
  if (bytes_.empty()) return;
  const auto refuse = [&](const char* what) {
    user_error("{}: the character map {}: the file is damaged, copy it again", place, what);
  };
  uint32_t trie_bytes = 0;
  if (bytes_.size() < 4) refuse("is cut short");
  std::memcpy(&trie_bytes, bytes_.data(), 4);
  if (trie_bytes % 4 != 0 || trie_bytes < 4 || trie_bytes > bytes_.size() - 4) refuse("has no trie of its size");
  units_.resize(trie_bytes / 4);
  std::memcpy(units_.data(), bytes_.data() + 4, trie_bytes);
  texts_begin_ = 4 + size_t{trie_bytes};
  const std::string_view texts = std::string_view(bytes_).substr(texts_begin_);
  if (texts.empty() || texts.back() != '\0') refuse("has texts without an end");
  if (find_invalid_utf8(texts)) refuse("has texts that are not UTF-8");
  for (const uint32_t unit : units_) {
    if ((unit & kIsEnd) == 0) continue;
    if (value(unit) >= texts.size()) refuse("points behind its texts");
    // A place inside a character would make text that is not UTF-8.
    if ((static_cast<unsigned char>(texts[value(unit)]) & 0xC0) == 0x80) refuse("points into a character");
  }
}

CharacterMap::Rule CharacterMap::find(std::string_view text, bool first) const {
  Rule rule;
  if (units_.empty()) return rule;
  size_t node = children(units_[0]);
  for (size_t i = 0; i < text.size() && i < kLongestKey; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    node ^= byte;
    if (node >= units_.size() || label(units_[node]) != byte) break;
    const uint32_t unit = units_[node];
    node ^= children(unit);
    if (node >= units_.size()) break;
    if (!has_end(unit) || (units_[node] & kIsEnd) == 0) continue;
    rule = {i + 1, bytes_.data() + texts_begin_ + value(units_[node])};
    if (first) break;
  }
  return rule;
}

std::string CharacterMap::normalize_graphemes(std::string_view text) const {
  constexpr size_t kShort = 6;
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const size_t end = grapheme_end(text, at);
    const std::string_view grapheme = text.substr(at, end - at);
    const Rule whole = grapheme.size() < kShort ? shortest(grapheme) : Rule{};
    if (whole.length > 0) {
      out += whole.text;
      at = end;
      continue;
    }
    while (at < end) {
      const size_t size = decode_utf8(text, at).length;
      const Rule rule = shortest(text.substr(at, size));
      out += rule.length > 0 ? rule.text : text.substr(at, size);
      at += size;
    }
  }
  return out;
}

}  // namespace brisk
