// What every fuzzer here does with an input: a reader refuses it with UserError or accepts it for use. Anything else is
// a finding: another exception, a failed check, a report of a sanitizer, a leak, seconds of work, or far more memory
// than the input warrants.
//
//   extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
//     fuzz::unless_refused([&] {
//       const Thing thing(fuzz::bytes_of(data, size));
//       fuzz::require(thing.parts() >= 0, "a thing has parts");
//     });
//     return 0;
//   }
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string_view>

#include "base/error.h"

namespace brisk::fuzz {

inline std::string_view text_of(const uint8_t* data, size_t size) {
  return size == 0 ? std::string_view() : std::string_view(reinterpret_cast<const char*>(data), size);
}

inline std::span<const std::byte> bytes_of(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const std::byte*>(data), size};
}

inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  std::abort();
}

// Whether `use` came to its end. A refusal says something.
template <typename Use>
bool unless_refused(const Use& use) {
  try {
    use();
    return true;
  } catch (const UserError& error) {
    require(error.what()[0] != '\0', "a refusal says why");
    return false;
  }
}

// Reads every byte, so that one outside the memory given shows itself.
inline uint64_t sum_of_bytes(const void* data, int64_t bytes) {
  uint64_t sum = 0;
  for (int64_t i = 0; i < bytes; ++i) sum += static_cast<const uint8_t*>(data)[i];
  return sum;
}

}  // namespace brisk::fuzz
