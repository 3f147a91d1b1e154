// One mutation in four is ours (mutations.h), which keep JSON what it is; the others are libFuzzer's own.
#include <algorithm>
#include <cstring>

#include "base/runtime.h"
#include "fuzz/mutations.h"

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  static brisk::Runtime runtime;
  static const brisk::RuntimeScope scope(runtime);
  return 0;
}

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned int seed) {
  if (seed % 4 != 0) return LLVMFuzzerMutate(data, size, max_size);
  std::string text(reinterpret_cast<const char*>(data), size);
  brisk::fuzz::Mutator({}, seed).change(text);
  const size_t changed = std::min(text.size(), max_size);
  std::memcpy(data, text.data(), changed);
  return changed;
}
