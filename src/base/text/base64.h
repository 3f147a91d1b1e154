// Base64, as JSON files carry bytes.
//
//   decode_base64("aGk=")      // "hi"; nothing if it is not base64
//   encode_base64("hi")        // "aGk="
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace brisk {

std::optional<std::string> decode_base64(std::string_view text);
std::string encode_base64(std::string_view bytes);

}  // namespace brisk
