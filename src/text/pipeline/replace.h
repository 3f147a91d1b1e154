// Replaces every occurrence of a pattern by a text, in normalizers and decoders.
//
//   Replace({" ", /*is_regex=*/false}, "▁", place).apply("a b")     // "a▁b"
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "text/pipeline/json_fields.h"
#include "text/regex/regex.h"

namespace brisk {

class Replace {
 public:
  Replace(const TextPattern& pattern, std::string content, const std::string& place);
  std::string apply(std::string_view text) const;

 private:
  std::string literal_, content_;
  std::optional<Regex> regex_;  // else the literal
};

// UserError if a tokenizer's rules make so much of a text that they cannot be meant: a few rules that each double it
// fill any memory. `who` is the part of the tokenizer that did: "decoder makes".
void check_growth(size_t size_before, size_t size_after, const char* who);

}  // namespace brisk
