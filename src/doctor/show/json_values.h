// Numbers in the doctor's JSON: null is what is not known.
#pragma once

#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>

namespace brisk {

inline nlohmann::ordered_json finite_or_null(double value) {
  return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json();
}
inline nlohmann::ordered_json from_zero_or_null(double value) {
  return value >= 0 ? finite_or_null(value) : nlohmann::ordered_json();
}
inline nlohmann::ordered_json above_zero_or_null(double value) {
  return value > 0 ? finite_or_null(value) : nlohmann::ordered_json();
}
inline nlohmann::ordered_json whole_or_null(int64_t value) {
  return value >= 0 ? nlohmann::ordered_json(value) : nlohmann::ordered_json();
}
inline nlohmann::ordered_json whole_above_zero_or_null(int64_t value) {
  return value > 0 ? nlohmann::ordered_json(value) : nlohmann::ordered_json();
}

}  // namespace brisk
