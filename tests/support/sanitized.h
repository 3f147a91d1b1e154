// Whether what is tested was compiled with the sanitizers, which make it a hundred times slower: tests that repeat
// themselves repeat less there. Everything runs in full as it ships.
#pragma once

namespace brisk::testing {

#ifdef BRISK_SANITIZED
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

}  // namespace brisk::testing
