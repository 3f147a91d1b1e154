// `brisk train --smoke-test`: the whole path of a job (tokenizer, training, evaluation, checkpoint, kill, resume,
// generation, export) on a small subset of its own data with a small stand-in for its model, in seconds. Each stage
// that trains or uses a model is a process of its own, as in a real run, so that one can really be killed.
//
//   Job job = load_job(path, settings, notes);
//   take_model_from_source(job, false);
//   resolve_defaults(job);
//   run_smoke_test(job);       // UserError that names the stage that failed; leaves nothing behind
#pragma once

#include "job/job.h"

namespace brisk {

bool run_smoke_test(const Job& job);  // false if it was interrupted

}  // namespace brisk
