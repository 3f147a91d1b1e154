// --prompt-file of `brisk generate`.
//
//   const std::string prompt = read_prompt_file("-");     // standard input
#pragma once

#include <string>

namespace brisk {

// A file, or standard input ("-"); the end of its last line is no part of it.
std::string read_prompt_file(const std::string& path);

}  // namespace brisk
