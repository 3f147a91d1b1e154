// What to type instead of a flag that a command does not have, and that is known from elsewhere.
//
//   flag_hint("train", "--epochs", "3");        // "use --stop 3e"
//   flag_hint("train", "--weight-decay", "0");  // "use --set training.weight_decay=0"
//   flag_hint("train", "--frobnicate", "");     // ""
#pragma once

#include <string>

namespace brisk {

// `value` is what follows the flag on the command line, or empty.
std::string flag_hint(const std::string& command, const std::string& flag, const std::string& value);

}  // namespace brisk
