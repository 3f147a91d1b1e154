// Text in lines that fit a terminal.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace brisk {

constexpr int64_t kColumns = 100;

// Words in lines of kColumns, of which all but the first, which begins with `first`, begin with `indent` spaces. What came
// from outside is made printable; a word that is longer than a line is cut into several.
std::string wrapped(std::string_view first, std::string_view text, int64_t indent);

}  // namespace brisk
