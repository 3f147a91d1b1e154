// JSON written by people: comments are allowed, and errors name the position and the likely slip.
//
//   std::vector<std::string> problems;                                          // keys given twice
//   const nlohmann::ordered_json root = parse_json(text, "job.json", problems);
//   // UserError: "job.json:3:1: ...; remove the comma before it"
#pragma once

#include <cstddef>
#include <exception>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace brisk {

constexpr size_t kMostProblems = 50;  // more would not be read

nlohmann::ordered_json parse_json(const std::string& text, const std::string& source,
                                  std::vector<std::string>& problems);

// The text of nlohmann's exception without its prefix and position.
std::string json_problem(const std::exception& error);

}  // namespace brisk
