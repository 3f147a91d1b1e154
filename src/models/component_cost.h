// What a model costs, by component, for the table that `brisk train` prints.
//
//   {"attention", 2362368, 16.5e6}     // name, parameters, FLOP a token
#pragma once

#include <cstdint>
#include <string>

namespace brisk {

struct ComponentCost {
  std::string component;
  int64_t parameters = 0;
  double flop_per_token = 0;  // training: forward and both gradients; attention at the given mean length
};

}  // namespace brisk
