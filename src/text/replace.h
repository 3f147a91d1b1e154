// Every occurrence of a pattern replaced by a text: a part of normalizers and of decoders.
//
//   Replace({" ", /*is_regex=*/false}, "▁", place).apply("a b")     // "a▁b"
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "text/json_fields.h"
#include "text/regex.h"

namespace brisk {

class Replace {
 public:
  Replace(const TextPattern& pattern, std::string content, const std::string& place);
  std::string apply(std::string_view text) const;

 private:
  std::string literal_, content_;
  std::optional<Regex> regex_;  // else the literal
};

}  // namespace brisk
