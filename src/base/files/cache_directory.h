// The directory for files that brisk can make again: token files, tuned kernel choices.
#pragma once

#include <string>

namespace brisk {

// $XDG_CACHE_HOME/brisk, or ~/.cache/brisk, or a folder under /tmp for a user without a home.
std::string default_cache_directory();

}  // namespace brisk
