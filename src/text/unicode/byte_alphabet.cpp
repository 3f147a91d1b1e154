#include "text/unicode/byte_alphabet.h"

#include <array>
#include <cstdint>

#include "base/text/unicode.h"

namespace brisk {

namespace {

constexpr uint32_t kNotOfTheAlphabet = 256;

struct Alphabet {
  std::array<uint32_t, 256> character_of_byte{};
  std::array<uint32_t, 256 + 68> byte_of_character{};
};

constexpr Alphabet kAlphabet = [] {
  Alphabet alphabet;
  for (uint32_t& byte : alphabet.byte_of_character) byte = kNotOfTheAlphabet;
  uint32_t next_character = 256;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
    const uint32_t character = printable ? byte : next_character++;
    alphabet.character_of_byte[byte] = character;
    alphabet.byte_of_character[character] = byte;
  }
  return alphabet;
}();

}  // namespace

std::string byte_alphabet_encode(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) append_utf8(kAlphabet.character_of_byte[static_cast<unsigned char>(byte)], text);
  return text;
}

std::optional<std::string> byte_alphabet_decode(std::string_view text) {
  std::string bytes;
  for (size_t at = 0; at < text.size();) {
    const CodePoint character = decode_utf8(text, at);
    if (character.value >= kAlphabet.byte_of_character.size()) return std::nullopt;
    const uint32_t byte = kAlphabet.byte_of_character[character.value];
    if (byte == kNotOfTheAlphabet) return std::nullopt;
    bytes += static_cast<char>(byte);
    at += character.length;
  }
  return bytes;
}

}  // namespace brisk
