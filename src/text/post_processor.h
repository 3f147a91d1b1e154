// The "post_processor" of a tokenizer.json, as far as it is about one text: the special tokens around it.
//
//   const TextTemplate around = read_text_template(json, "tokenizer.json: post_processor");
//   around.before       // {"<s>"}
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace brisk {

struct TextTemplate {
  std::vector<std::string> before, after;
};

TextTemplate read_text_template(const nlohmann::json& component, const std::string& place);

}  // namespace brisk
