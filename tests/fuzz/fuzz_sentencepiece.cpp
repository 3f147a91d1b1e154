// A SentencePiece .model; by way of its own reader, since the first bytes decide which one tokenizer_from_memory takes.
#include "fuzz/tokenizer_use.h"
#include "text/files/tokenizer_files.h"

using namespace brisk;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view content = fuzz::text_of(data, size);
  fuzz::unless_refused([&] {
    const BpeTokenizer tokenizer(parts_from_sentencepiece("tokenizer.model", content), "tokenizer.model");
    fuzz::use_tokenizer(tokenizer, content.substr(content.size() / 2));
  });
  return 0;
}
