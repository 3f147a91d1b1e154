// The four normal forms of Unicode.
//
//   normalize_unicode("e\u0301", NormalForm::kNfc)     // "é", one code point
//   normalize_unicode("ﬁ", NormalForm::kNfkd)          // "fi"
//
// Bytes that are not UTF-8 are preserved.
#pragma once

#include <string>
#include <string_view>

namespace brisk {

enum class NormalForm { kNfc, kNfd, kNfkc, kNfkd };

std::string normalize_unicode(std::string_view text, NormalForm form);

}  // namespace brisk
