// Operations on all parameters at once, through their flat arrays.
#pragma once

#include "tensor/parameter.h"

namespace brisk {

// Rewrites the bf16 compute copies from the masters: after initialisation, an import, or a load.
void refresh_compute_copies(const ParameterStore& store);
// Of the elements [begin, end) of the flat arrays, where all of the store's parameters have masters. On a GPU it is queued.
void refresh_compute_copies(const ParameterStore& store, int64_t begin, int64_t end);

// The name of the first parameter with a value (or gradient) that is not finite, or "".
std::string first_not_finite(const ParameterStore& store, bool gradients);

}  // namespace brisk
