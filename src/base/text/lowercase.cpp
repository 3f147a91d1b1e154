#include "base/text/lowercase.h"

#include <algorithm>
#include <span>
#include <vector>

#include "base/text/unicode.h"

namespace brisk {

namespace {

struct CaseContextRange {
  uint32_t first, last;
};

#include "base/text/case_context_tables.inc"

bool is_among(std::span<const CaseContextRange> ranges, uint32_t code_point) {
  const auto range = std::ranges::lower_bound(ranges, code_point, {}, &CaseContextRange::last);
  return range != ranges.end() && code_point >= range->first;
}

constexpr uint32_t kCapitalSigma = 0x3A3, kSigma = 0x3C3, kFinalSigma = 0x3C2;
constexpr uint32_t kCapitalIWithDot = 0x130, kDotAbove = 0x307;

// Unicode's condition Final_Sigma, of every sigma at once: what stands before and behind it is looked through once, so
// that a text of nothing but sigmas and marks takes linear time.
std::string lowercase_with_sigmas(std::string_view text) {
  std::vector<uint32_t> code_points;
  std::vector<size_t> begins;
  for (size_t at = 0; at < text.size();) {
    const CodePoint character = decode_utf8(text, at);
    code_points.push_back(character.value);
    begins.push_back(at);
    at += character.length;
  }
  begins.push_back(text.size());
  std::vector<bool> cased_behind(code_points.size());  // of the nearest one that is not ignorable
  bool is_cased = false;
  for (size_t i = code_points.size(); i-- > 0;) {
    cased_behind[i] = is_cased;
    if (!is_among(kCaseIgnorableRanges, code_points[i])) is_cased = is_among(kCasedRanges, code_points[i]);
  }
  std::string lower;
  is_cased = false;
  for (size_t i = 0; i < code_points.size(); ++i) {
    const uint32_t c = code_points[i];
    if (c == kInvalidCodePoint) {
      lower += text.substr(begins[i], begins[i + 1] - begins[i]);
    } else if (c == kCapitalSigma) {
      append_utf8(is_cased && !cased_behind[i] ? kFinalSigma : kSigma, lower);
    } else {
      append_utf8(lowercase_of(c), lower);
      if (c == kCapitalIWithDot) append_utf8(kDotAbove, lower);
    }
    if (!is_among(kCaseIgnorableRanges, c)) is_cased = is_among(kCasedRanges, c);
  }
  return lower;
}

}  // namespace

std::string lowercase_text(std::string_view text) {
  if (text.find("\u03A3") != std::string_view::npos) return lowercase_with_sigmas(text);
  std::string lower;
  lower.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const CodePoint character = decode_utf8(text, at);
    if (character.value == kInvalidCodePoint) {
      lower += text[at];
    } else {
      append_utf8(lowercase_of(character.value), lower);
      if (character.value == kCapitalIWithDot) append_utf8(kDotAbove, lower);
    }
    at += character.length;
  }
  return lower;
}

}  // namespace brisk
