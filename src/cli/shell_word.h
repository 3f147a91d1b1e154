// Commands that are shown to be typed: a file's name may hold what a shell would obey.
//
//   say("brisk train {} --resume", shell_word(path));     // 'a file; rm -r' for one that is called so
#pragma once

#include <string>

namespace brisk {

// Quoted for a shell if it contains anything but plain characters.
std::string shell_word(const std::string& text);

}  // namespace brisk
