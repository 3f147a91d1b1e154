// GPT-2's way of writing any byte string as readable text: the 188 printable bytes of Latin-1 stand for themselves,
// the other 68 for the characters from U+0100 on, so that files show " cat" as "Ġcat".
//
//   byte_alphabet_encode(" cat") == "Ġcat"
//   byte_alphabet_decode("Ġcat") == " cat"      // nothing if a character is not of the alphabet
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace brisk {

std::string byte_alphabet_encode(std::string_view bytes);
std::optional<std::string> byte_alphabet_decode(std::string_view text);

}  // namespace brisk
