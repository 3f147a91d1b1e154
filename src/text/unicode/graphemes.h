// User-perceived characters: the extended grapheme clusters of Unicode (UAX 29).
//
//   grapheme_end("e\u0301a", 0)     // 3: the letter and its accent
#pragma once

#include <cstddef>
#include <string_view>

namespace brisk {

// Where the grapheme that begins at `begin` ends; begin < text.size(). A byte that is not UTF-8 is one by itself. Takes time
// linear in the length of the grapheme.
size_t grapheme_end(std::string_view text, size_t begin);

}  // namespace brisk
