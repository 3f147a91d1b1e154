// The --allow-nonfinite option, shared by all commands that open a model.
//
//   add_nonfinite_option(*command, arguments->allow_nonfinite);
#pragma once

#include <CLI/CLI.hpp>

namespace brisk {

inline void add_nonfinite_option(CLI::App& command, bool& allow) {
  command.add_flag("--allow-nonfinite", allow, "Open a model even if it has weights that are NaN or infinite");
}

}  // namespace brisk
