#include "text/unicode/graphemes.h"

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "base/text/unicode.h"

namespace brisk {

namespace {

// Grapheme_Cluster_Break, with Extended_Pictographic and the parts of Indic conjuncts as far as a rule asks for them.
enum class GraphemeClass : uint8_t {
  kOther,
  kCr,
  kLf,
  kControl,
  kExtend,
  kLinker,  // an Extend that joins Indic consonants
  kZwj,
  kRegional,
  kPrepend,
  kSpacingMark,
  kL,
  kV,
  kT,
  kLv,
  kLvt,
  kPictographic,
  kConsonant,     // of an Indic script
  kSpacingExtend  // an Extend that ends an Indic conjunct
};
using enum GraphemeClass;

struct GraphemeRange {
  uint32_t first, last;
  GraphemeClass kind;
};

#include "text/unicode/grapheme_tables.inc"

GraphemeClass class_of(uint32_t code_point) {
  if (code_point == kInvalidCodePoint) return kControl;
  if (code_point >= 0xAC00 && code_point <= 0xD7A3) return (code_point - 0xAC00) % 28 == 0 ? kLv : kLvt;
  const auto* range = std::ranges::lower_bound(kGraphemeRanges, code_point, {}, &GraphemeRange::last);
  return range != std::end(kGraphemeRanges) && code_point >= range->first ? range->kind : kOther;
}

}  // namespace

size_t grapheme_end(std::string_view text, size_t begin) {
  const CodePoint first = decode_utf8(text, begin);
  GraphemeClass before = class_of(first.value);
  bool after_pictographic = before == kPictographic;  // and any Extend behind it
  bool after_consonant = before == kConsonant, after_linker = false;
  int regional = before == kRegional ? 1 : 0;
  size_t at = begin + first.length;
  while (at < text.size()) {
    const CodePoint character = decode_utf8(text, at);
    const GraphemeClass next = class_of(character.value);
    const bool is_extend = next == kExtend || next == kLinker || next == kSpacingExtend;
    bool joins = false;
    if (before == kCr) {
      joins = next == kLf;
    } else if (before == kControl || before == kLf || next == kControl || next == kCr || next == kLf) {
      joins = false;
    } else if (is_extend || next == kZwj || next == kSpacingMark || before == kPrepend) {
      joins = true;
    } else if (before == kL) {
      joins = next == kL || next == kV || next == kLv || next == kLvt;
    } else if (before == kLv || before == kV) {
      joins = next == kV || next == kT;
    } else if (before == kLvt || before == kT) {
      joins = next == kT;
    } else if (next == kPictographic) {
      joins = before == kZwj && after_pictographic;
    } else if (next == kConsonant) {
      joins = after_consonant && after_linker;
    } else if (next == kRegional) {
      joins = before == kRegional && regional % 2 == 1;
    }
    if (!joins) break;
    const bool goes_on =
        next == kExtend || next == kLinker || next == kZwj;  // an Indic conjunct, towards its next consonant
    after_linker = next == kLinker || (after_linker && goes_on);
    after_consonant = next == kConsonant || (after_consonant && goes_on);
    after_pictographic =
        next == kPictographic || (after_pictographic && (is_extend || (next == kZwj && before != kZwj)));
    regional = next == kRegional ? regional + 1 : 0;
    before = next;
    at += character.length;
  }
  return at;
}

}  // namespace brisk
