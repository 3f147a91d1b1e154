#include "text/regex/regex.h"

namespace brisk {

size_t next_character(std::string_view text, size_t at) { return at + decode_utf8(text, at).length; }

size_t previous_character(std::string_view text, size_t at) {
  size_t begin = at - 1;
  while (begin > 0 && at - begin < 4 && (static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80) --begin;
  return begin + decode_utf8(text, begin).length == at ? begin : at - 1;  // else the last byte is not UTF-8
}

Regex::Regex(std::string_view pattern, const std::string& place)
    : program_(std::make_unique<const RegexProgram>(compile_regex(pattern, place))) {}
Regex::~Regex() = default;
Regex::Regex(Regex&&) noexcept = default;
Regex& Regex::operator=(Regex&&) noexcept = default;

}  // namespace brisk
