// GPT-2's two files: encoder.json, a NUL, vocab.bpe.
#include "fuzz/tokenizer_use.h"

using namespace brisk;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view content = fuzz::text_of(data, size);
  const size_t cut = std::min(content.find('\0'), content.size());
  const std::string_view vocabulary = content.substr(0, cut);
  const std::string_view merges = content.substr(std::min(cut + 1, content.size()));
  fuzz::unless_refused([&] {
    const auto tokenizer = gpt2_tokenizer_from_memory(vocabulary, "encoder.json", merges, "vocab.bpe");
    fuzz::use_tokenizer(*tokenizer, merges);
    std::vector<TokenId> ids;
    tokenizer->encode(merges.substr(0, 200), ids);
    fuzz::require(tokenizer->decode(ids) == merges.substr(0, 200), "a byte-level vocabulary loses nothing");
  });
  return 0;
}
