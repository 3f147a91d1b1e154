#include "base/files/cache_directory.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>

namespace brisk {

std::string default_cache_directory() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && cache[0] == '/') return fmt::format("{}/brisk", cache);
  const char* home = std::getenv("HOME");
  if (home != nullptr && home[0] == '/') return fmt::format("{}/.cache/brisk", home);
  return fmt::format("/tmp/brisk-cache-{}", ::getuid());
}

}  // namespace brisk
