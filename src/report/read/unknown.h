// A figure that a run's files do not tell: null in JSON, a dash for people.
//
//   double perplexity = kUnknown;
//   if (std::isfinite(perplexity)) ...
#pragma once

#include <limits>

namespace brisk {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

}  // namespace brisk
