// Range checks for numbers on the command line. CLI11's own accept NaN and print 300 digits.
//
//   command->add_option("--top-k", top_k, "...")->check(at_least(0));      // "--top-k: found -1, expected at least 0"
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>

namespace brisk {

CLI::Validator at_least(double least);
CLI::Validator above(double limit);
CLI::Validator between(double least, double most);

// UserError if --max-length exceeds the number of positions of the model.
void check_max_length(int64_t max_length, int64_t positions);

}  // namespace brisk
