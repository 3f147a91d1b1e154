// The value of an option that is one of some words, or a number for each of some names.
//
//   NamedNumbers weights{"balanced"};
//   NamedNumbers others{"", {{"neg", 1}, {"pos", 3}}};
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace brisk {

struct NamedNumbers {
  std::string word;  // empty: the numbers
  std::vector<std::pair<std::string, double>> numbers = {};

  bool operator==(const NamedNumbers&) const = default;
};

}  // namespace brisk
