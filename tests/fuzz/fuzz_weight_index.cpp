#include "fuzz/fuzz_input.h"
#include "hub/formats/weight_files.h"

using namespace brisk;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::unless_refused([&] {
    const auto files =
        weight_index_from_json_text(std::string(fuzz::text_of(data, size)), "model.safetensors.index.json");
    fuzz::require(!files.empty(), "it names tensors");
    for (const auto& [tensor, file] : files) {
      fuzz::require(!file.empty() && file.find('/') == std::string::npos, "files stand beside the index");
    }
  });
  return 0;
}
