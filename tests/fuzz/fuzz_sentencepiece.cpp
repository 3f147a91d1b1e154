// A SentencePiece .model; by way of its own reader, since the first bytes decide which one tokenizer_from_memory takes.
#include <nlohmann/json.hpp>

#include "fuzz/tokenizer_use.h"
#include "text/files/tokenizer_files.h"

using namespace brisk;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view content = fuzz::text_of(data, size);
  fuzz::unless_refused([&] {
    fuzz::use_tokenizer(*tokenizer_from_sentencepiece("tokenizer.model", content, nullptr),
                        content.substr(content.size() / 2));
  });
  return 0;
}
