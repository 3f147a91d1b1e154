// The "pre_tokenizer" of a tokenizer.json: how a text is split into pieces; merges never cross their borders.
//
//   const PreTokenizer pre_tokenizer(json, "tokenizer.json: pre_tokenizer");   // UserError if unsupported
//   pre_tokenizer.split("the cat", /*opens_text=*/true, [&](std::string_view piece) { ... });   // "the", " cat"
//
// If ByteLevel is the last step, the pieces are the bytes themselves, not the characters that represent them in files
// (byte_alphabet.h): see gives_bytes().
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/pipeline/words.h"

namespace brisk {

class PreTokenizer {
 public:
  PreTokenizer();  // one piece: the text
  PreTokenizer(const nlohmann::json& component, const std::string& place);
  ~PreTokenizer();
  PreTokenizer(PreTokenizer&&) noexcept;
  PreTokenizer& operator=(PreTokenizer&&) noexcept;

  bool gives_bytes() const;

  // `opens_text`: it is the beginning of what the user gave. Pieces are never empty.
  template <typename Visit>
  void split(std::string_view text, bool opens_text, const Visit& visit) const {
    if (!only_words_) return split_by_steps(text, opens_text, visit);
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = word_end(text, begin, *only_words_);
      visit(text.substr(begin, end - begin));
      begin = end;
    }
  }

 private:
  using Visitor = std::function<void(std::string_view)>;
  struct Step;

  void add(const nlohmann::json& component, const std::string& place, int depth);
  void add_split(const nlohmann::json& component, const std::string& place);
  void split_by_steps(std::string_view text, bool opens_text, const Visitor& visit) const;
  void run(size_t step, std::string_view text, bool opens_text, const Visitor& visit) const;

  std::vector<Step> steps_;
  std::optional<WordPattern> only_words_;  // set where nothing but words has to be found
};

}  // namespace brisk
