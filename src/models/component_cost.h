// What a model costs, by component, for the table that `brisk train` prints.
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
