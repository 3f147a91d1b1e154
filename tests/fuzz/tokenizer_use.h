// What is done with a tokenizer that a reader accepted: texts to ids and back, and saved and read again.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "fuzz/fuzz_input.h"
#include "text/pipeline/pipeline_tokenizer.h"

namespace brisk::fuzz {

// `sample` is a text besides those that stand here; the input's own bytes hold what its rules are about.
inline void use_tokenizer(const Tokenizer& tokenizer, std::string_view sample) {
  const std::string texts[] = {
      "",
      "Hello, the then  hen's 1234 they'LL\n\n x\t<|endoftext|><s>é ▁▁ ",
      "\u4F60\u597D \u00DF\u0130 \U0001F600 e\u0301 \xFF\xC0\x80 \0end",
      std::string(100, ' ') + std::string(60, 'a'),
      std::string(sample.substr(0, 100)),
  };
  const auto* pipeline = dynamic_cast<const PipelineTokenizer*>(&tokenizer);
  require(pipeline != nullptr, "every file becomes a pipeline");
  const std::string saved = pipeline->to_json();
  std::unique_ptr<Tokenizer> again;
  require(unless_refused([&] { again = tokenizer_from_memory(saved, "saved.json"); }), "what is saved can be read");
  require(again->fingerprint() == tokenizer.fingerprint(), "a tokenizer saved and read again is the same");
  for (const std::string& text : texts) {
    std::vector<TokenId> ids, ids_again;
    const auto encode = [&](const Tokenizer& by, std::vector<TokenId>& out) {
      return unless_refused([&] { by.encode(text, out); });  // refused where its rules make too much of a text
    };
    if (!encode(tokenizer, ids)) continue;
    require(encode(*again, ids_again) && ids == ids_again, "and gives the same ids");
    unless_refused([&] { tokenizer.encode_with_specials(text, ids); });
    for (const TokenId id : ids) require(id >= 0 && id < tokenizer.vocab_size(), "ids are of the vocabulary");
    unless_refused([&] { tokenizer.decode(ids); });
    unless_refused([&] {
      for (const TokenId id : ids) tokenizer.piece(id);
    });
  }
  for (const auto id : {tokenizer.end_of_document(), tokenizer.start_of_text()}) {
    require(!id || (*id >= 0 && *id < tokenizer.vocab_size()), "the ends of a text are of the vocabulary");
  }
}

}  // namespace brisk::fuzz
