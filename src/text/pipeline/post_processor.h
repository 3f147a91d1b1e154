// The "post_processor" of a tokenizer.json: the special tokens around a text, and around a pair of texts.
//
//   const TextTemplates around = read_text_templates(json, "tokenizer.json: post_processor");
//   around.single.prefix       // {"[CLS]"}
//   around.pair.second_type    // true: the second text is of token type 1
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace brisk {

// SequenceTemplate (tokenizer.h) with the tokens as files write them.
struct NamedTemplate {
  std::vector<std::string> prefix, middle, suffix;
  bool second_type = false;
};

struct TextTemplates {
  NamedTemplate single;
  NamedTemplate pair = {.second_type = true};  // what the library does where no file says otherwise
  std::string pair_problem;                    // not empty: why the file's way with pairs is no NamedTemplate
};

TextTemplates read_text_templates(const nlohmann::json& component, const std::string& place);

}  // namespace brisk
