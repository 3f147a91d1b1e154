// A number with its noun: "1 document", "2 documents", "3 entries".
//
//   say("trained on {}", plural(texts.size(), "document"));
//   say("{} {}", with_commas(count), plural_noun(count, "entry", "entries"));     // where the number is written otherwise
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace brisk {

// `many`: where it is not the noun with an s.
inline std::string plural_noun(int64_t count, std::string_view noun, std::string_view many = "") {
  if (count == 1) return std::string(noun);
  return many.empty() ? std::string(noun) + "s" : std::string(many);
}

inline std::string plural(int64_t count, std::string_view noun, std::string_view many = "") {
  return fmt::format("{} {}", count, plural_noun(count, noun, many));
}

}  // namespace brisk
