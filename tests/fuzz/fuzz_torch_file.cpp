// pytorch_model.bin: the zip, the pickle in it, and the tensors that it names.
#include "fuzz/fuzz_input.h"
#include "hub/formats/torch_file.h"

using namespace brisk;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::unless_refused([&] {
    const TorchFile file(fuzz::bytes_of(data, size), "pytorch_model.bin");
    for (const SafetensorsEntry& entry : file.entries()) {
      fuzz::require(file.find(entry.name) != nullptr, "an entry is found by its name");
      fuzz::require(entry.count() * size_of(entry.type) == entry.bytes, "the bytes are those of the elements");
      fuzz::sum_of_bytes(entry.data, entry.bytes);
    }
  });
  return 0;
}
