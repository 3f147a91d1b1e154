// Limits of the numbers on a command line. The parser's own let NaN pass and print 300 digits.
//
//   command->add_option("--top-k", top_k, "...")->check(at_least(0));      // "--top-k: found -1, expected at least 0"
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>

namespace brisk {

CLI::Validator at_least(double least);
CLI::Validator above(double limit);
CLI::Validator between(double least, double most);

// UserError where --max-length is more than the model can read.
void check_max_length(int64_t max_length, int64_t positions);

}  // namespace brisk
