// Runs that train some of their weights: what is frozen is saved once, in RUN/frozen.safetensors, and checkpoints hold
// the rest (the last layers, or adapters).
//
//   save_frozen(run, store);                                     // at the start
//   load_checkpoint(checkpoint, store);                          // what is trained, and
//   load_frozen(run, store);                                     // what is not: to go on training
//   load_whole_model(checkpoint, store, adapter_scale);          // to use it: adapters are merged into their matrices
#pragma once

#include <cstdint>
#include <string>

#include "hub/finite.h"
#include "tensor/parameter.h"

namespace brisk {

constexpr const char* kFrozenFile = "frozen.safetensors";

// Nothing if everything is trained. Returns the bytes written.
int64_t save_frozen(const std::string& run, const ParameterStore& store);
void load_frozen(const std::string& run, ParameterStore& store);

// Masters from the checkpoint, where they are there, and otherwise from the run's frozen ones; a matrix with adapters
// becomes W + adapter_scale B A. Adapters of `store` itself are left alone. UserError if a tensor is missing or of
// another shape. Compute copies, where the store has them, are stale afterwards.
void load_whole_model(const std::string& checkpoint, ParameterStore& store, double adapter_scale,
                      NonFinite nonfinite = NonFinite::refuse);

// UserError where load_whole_model() would not find a parameter of `store`, which needs no memory yet, in its shape.
void check_whole_model(const std::string& checkpoint, const ParameterStore& store);

}  // namespace brisk
