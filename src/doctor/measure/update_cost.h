// What an update of the parameters reads, writes and computes.
#pragma once

#include <cstdint>

#include "job/job.h"
#include "tensor/parameter.h"

namespace brisk {

// Weight and two moments read and written, the gradient read.
int64_t update_bytes(int64_t trained_parameters);

// Of the optimizer's matrix products: Muon's; AdamW has none.
double update_flop(const ParameterStore& store, const TrainingOptions& training);

}  // namespace brisk
