// Options of a job's model section that its architecture does not read. A new architecture has fewer settings than the
// decoder, whose options the section has: a looped transformer with `"activation": "relu"` would train with its own.
// Nobody has to list them: an option is read where another value of it makes another configuration.
//
//   check_model_options(job);   // UserError: "model.activation does not apply to model.type looped"
#pragma once

#include "job/job.h"

namespace brisk {

// Of a job whose defaults are resolved. UserError where it gives an option another value than its default, and the
// architecture makes the same model of both. With model.from the model decides, and everything is as it is there.
void check_model_options(const Job& job);

}  // namespace brisk
