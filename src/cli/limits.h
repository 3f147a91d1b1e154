// Range checks for numbers on the command line. CLI11's own accept NaN and print 300 digits.
//
//   command->add_option("--top-k", top_k, "...")->check(at_least(0));      // "--top-k: found -1, expected at least 0"
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>

namespace brisk {

class Runtime;

CLI::Validator at_least(double least);
CLI::Validator above(double limit);
CLI::Validator between(double least, double most);

// --threads of a command.
CLI::Option* add_threads_option(CLI::App& command, int64_t& threads);

// 0: all cores. UserError if there are too many.
void set_threads(Runtime& runtime, int64_t threads);

}  // namespace brisk
