// The loss and the gradient of one optimizer step in a file, and how two of them differ.
//
//   write_gradient(path, loss, scaling, store);
//   const StepProof proof = compare_gradients(path, other, {.relative = 1e-4});
#pragma once

#include <string>

#include "doctor/diagnosis.h"
#include "tensor/parameter.h"

namespace brisk {

// `scaling`: what the gradient in the store is multiplied by (StepResult::scaling).
void write_gradient(const std::string& path, double loss, double scaling, const ParameterStore& store);

// Both of the same parameters. What is allowed: the norm of the whole gradient's difference, relative to its own; a single
// tensor may differ by several times as much, as its gradient may be a small difference of large sums.
StepProof compare_gradients(const std::string& path, const std::string& other, double allowed);

}  // namespace brisk
