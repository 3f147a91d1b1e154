// A number that stands for the values of parameters, to key what was computed with them.
//
//   const uint64_t key = checksum_of_parameters(store, [](const Parameter& p) { return !p.spec.trained; });
#pragma once

#include <cstdint>
#include <functional>

#include "tensor/parameter.h"

namespace brisk {

// Of the masters of those that `of` names, in their order; none: of all.
uint64_t checksum_of_parameters(const ParameterStore& store, const std::function<bool(const Parameter&)>& of = {});

}  // namespace brisk
