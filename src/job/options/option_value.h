// The value of one option in JSON: put into its field, and what to say where it does not fit.
//
//   if (!assign(option, value, "job.json", notes)) problem("{}: found {}, expected {}; {}", option.path,
//                                                          json_in_message(value), option.expected(), fix_for(option, value));
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "job/options/options.h"

namespace brisk {

// Puts the value into the option's field; false where the type or the range does not fit. A note for each other word.
bool assign(const Option& option, const nlohmann::ordered_json& value, const std::string& source,
            std::vector<std::string>& notes);

bool is_utf8(const std::string& text);  // else JSON cannot hold it

// The slip behind a value that does not fit, or what the option is without it: the value that it has now.
std::string fix_for(const Option& option, const nlohmann::ordered_json& value);

}  // namespace brisk
