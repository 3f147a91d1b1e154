#include "fuzz/tokenizer_use.h"

using namespace brisk;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view content = fuzz::text_of(data, size);
  fuzz::unless_refused([&] {
    fuzz::use_tokenizer(*tokenizer_from_memory(content, "tokenizer.json"), content.substr(content.size() / 2));
  });
  return 0;
}
