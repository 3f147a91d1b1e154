// The weights that a run begins with: new ones, parts of trained models (model.decoder_from, ...), or a trained model's
// (model.from).
//
//   for (const std::string& line : begin_weights(job, store)) say("{}", line);
#pragma once

#include <string>
#include <vector>

#include "job/job.h"
#include "tensor/parameter.h"

namespace brisk {

// Fills the masters; compute copies are stale afterwards. UserError where a model does not fit.
std::vector<std::string> begin_weights(const Job& job, ParameterStore& store);

}  // namespace brisk
