// The lower case of a text, as Unicode's full mapping has it and Python's str.lower() gives it.
//
//   lowercase_text("ΣΊΣΥΦΟΣ")     // "σίσυφος": a capital sigma at the end of a word becomes ς
//
// Bytes that are not UTF-8 stay as they are. lowercase_of() of base/text/unicode.h maps single code points.
#pragma once

#include <string>
#include <string_view>

namespace brisk {

std::string lowercase_text(std::string_view text);

}  // namespace brisk
