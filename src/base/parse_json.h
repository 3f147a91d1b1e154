// JSON as a person writes it: comments are allowed, and what is wrong is said with its place and the slip behind it.
//
//   std::vector<std::string> problems;                                          // keys that are given twice
//   const nlohmann::ordered_json root = parse_json(text, "job.json", problems);
//   // UserError: "job.json:3:1: ...; remove the comma before it"
#pragma once

#include <cstddef>
#include <exception>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace brisk {

constexpr size_t kMostProblems = 50;  // nobody reads more at once

nlohmann::ordered_json parse_json(const std::string& text, const std::string& source,
                                  std::vector<std::string>& problems);

// What nlohmann's exception says, without its own prefix and place.
std::string json_problem(const std::exception& error);

}  // namespace brisk
