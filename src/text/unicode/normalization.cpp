#include "text/unicode/normalization.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "base/text/unicode.h"

namespace brisk {

namespace {

struct CanonicalDecomposition {
  uint32_t code_point;
  uint32_t first, second;  // second is 0 if there is only one
  bool composes;           // and is put together again by NFC
};

struct CompatibilityDecomposition {
  uint32_t code_point;
  const char* text;  // decomposed to the end
};

struct CombiningClassRange {
  uint32_t first, last;
  uint8_t value;
};

#include "text/unicode/normalization_tables.inc"

// A byte that is not UTF-8 travels as a code point past the last.
constexpr uint32_t kRawByte = 0x80000000;

struct Symbol {
  uint32_t code_point;
  uint8_t combining_class;
};

uint8_t combining_class_of(uint32_t code_point) {
  if (code_point < 0x300) return 0;
  const auto* range = std::ranges::lower_bound(kCombiningClassRanges, code_point, {}, &CombiningClassRange::last);
  return range != std::end(kCombiningClassRanges) && code_point >= range->first ? range->value : 0;
}

// Hangul syllables are computed: leading consonant, vowel, perhaps a trailing consonant.
constexpr uint32_t kSyllables = 0xAC00, kLeading = 0x1100, kVowels = 0x1161, kTrailing = 0x11A7;
constexpr uint32_t kLeadingCount = 19, kVowelCount = 21, kTrailingCount = 28;
constexpr uint32_t kSyllableCount = kLeadingCount * kVowelCount * kTrailingCount;

void append_symbol(uint32_t code_point, std::vector<Symbol>& out) {
  out.push_back({code_point, combining_class_of(code_point)});
}

void decompose(uint32_t code_point, bool compatibility, std::vector<Symbol>& out) {
  if (code_point < 0xA0 || code_point >= kCodePoints) {
    out.push_back({code_point, 0});
    return;
  }
  if (code_point - kSyllables < kSyllableCount) {
    const uint32_t index = code_point - kSyllables;
    append_symbol(kLeading + index / (kVowelCount * kTrailingCount), out);
    append_symbol(kVowels + index / kTrailingCount % kVowelCount, out);
    if (index % kTrailingCount != 0) append_symbol(kTrailing + index % kTrailingCount, out);
    return;
  }
  if (compatibility) {
    const auto* found =
        std::ranges::lower_bound(kCompatibilityDecompositions, code_point, {}, &CompatibilityDecomposition::code_point);
    if (found != std::end(kCompatibilityDecompositions) && found->code_point == code_point) {
      const std::string_view text = found->text;
      for (size_t at = 0; at < text.size();) {
        const CodePoint part = decode_utf8(text, at);
        append_symbol(part.value, out);
        at += part.length;
      }
      return;
    }
  }
  const auto* found =
      std::ranges::lower_bound(kCanonicalDecompositions, code_point, {}, &CanonicalDecomposition::code_point);
  if (found != std::end(kCanonicalDecompositions) && found->code_point == code_point) {
    decompose(found->first, compatibility, out);
    if (found->second != 0) decompose(found->second, compatibility, out);
    return;
  }
  append_symbol(code_point, out);
}

// Marks of different classes that follow one another are put in the order of their classes.
void order_marks(std::vector<Symbol>& symbols) {
  for (auto begin = symbols.begin(); begin != symbols.end();) {
    if (begin->combining_class == 0) {
      ++begin;
      continue;
    }
    const auto end = std::find_if(begin, symbols.end(), [](const Symbol& s) { return s.combining_class == 0; });
    std::stable_sort(begin, end,
                     [](const Symbol& a, const Symbol& b) { return a.combining_class < b.combining_class; });
    begin = end;
  }
}

// The code point that is `first` and `second` together; 0 if there is none.
uint32_t composed_of(uint32_t first, uint32_t second) {
  if (first - kLeading < kLeadingCount && second - kVowels < kVowelCount) {
    return kSyllables + ((first - kLeading) * kVowelCount + (second - kVowels)) * kTrailingCount;
  }
  if (first - kSyllables < kSyllableCount && (first - kSyllables) % kTrailingCount == 0 && second > kTrailing &&
      second - kTrailing < kTrailingCount) {
    return first + (second - kTrailing);
  }
  static const auto compositions = [] {
    std::unordered_map<uint64_t, uint32_t> map;
    for (const CanonicalDecomposition& entry : kCanonicalDecompositions) {
      if (entry.composes) map[static_cast<uint64_t>(entry.first) << 32 | entry.second] = entry.code_point;
    }
    return map;
  }();
  const auto found = compositions.find(static_cast<uint64_t>(first) << 32 | second);
  return found == compositions.end() ? 0 : found->second;
}

void compose(std::vector<Symbol>& symbols) {
  size_t size = 0;
  size_t starter = 0;
  bool has_starter = false;
  for (const Symbol symbol : symbols) {
    // A mark joins its starter unless one of the same or a higher class stands between them.
    const bool adjacent = has_starter && starter + 1 == size;
    const bool reachable = has_starter && (adjacent || (symbols[size - 1].combining_class != 0 &&
                                                        symbols[size - 1].combining_class < symbol.combining_class));
    if (reachable) {
      if (const uint32_t joined = composed_of(symbols[starter].code_point, symbol.code_point)) {
        symbols[starter].code_point = joined;
        continue;
      }
    }
    if (symbol.combining_class == 0) {
      starter = size;
      has_starter = true;
    }
    symbols[size++] = symbol;
  }
  symbols.resize(size);
}

// Characters that every form, or the composed canonical one, leaves as they are whatever stands around them.
bool surely_unchanged(uint32_t code_point, NormalForm form) {
  if (code_point < 0xA0) return true;
  if (code_point >= 0x3400 && code_point < 0xA000) return true;  // Chinese characters
  if (form != NormalForm::kNfc) return false;
  return code_point < 0x300 || (code_point >= 0x388 && code_point < 0x483) ||  // Latin, Greek, Cyrillic
         code_point - kSyllables < kSyllableCount;
}

}  // namespace

std::string normalize_unicode(std::string_view text, NormalForm form) {
  bool changes = false;
  for (size_t at = 0; at < text.size() && !changes;) {
    const CodePoint symbol = decode_utf8(text, at);
    changes = symbol.value != kInvalidCodePoint && !surely_unchanged(symbol.value, form);
    at += symbol.length;
  }
  if (!changes) return std::string(text);

  const bool compatibility = form == NormalForm::kNfkc || form == NormalForm::kNfkd;
  std::vector<Symbol> symbols;
  symbols.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const CodePoint symbol = decode_utf8(text, at);
    if (symbol.value == kInvalidCodePoint) {
      symbols.push_back({kRawByte | static_cast<unsigned char>(text[at]), 0});
    } else {
      decompose(symbol.value, compatibility, symbols);
    }
    at += symbol.length;
  }
  order_marks(symbols);
  if (form == NormalForm::kNfc || form == NormalForm::kNfkc) compose(symbols);
  std::string out;
  out.reserve(text.size());
  for (const Symbol& symbol : symbols) {
    if (symbol.code_point & kRawByte) {
      out += static_cast<char>(symbol.code_point & 0xFF);
    } else {
      append_utf8(symbol.code_point, out);
    }
  }
  return out;
}

}  // namespace brisk
