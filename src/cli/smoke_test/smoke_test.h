// `brisk train --smoke-test`: the whole path of a job (tokenizer, training, evaluation, checkpoint, kill, resume,
// generation, export) on a small subset of its own data with a small stand-in for its model, in seconds. Each stage
// that trains or uses a model is a process of its own, as in a real run, so that one can really be killed.
//
//   const TrainingJob job = TrainingJob::load(runtime, path, settings);
//   run_smoke_test(job, false);       // UserError that names the stage that failed; leaves nothing behind
#pragma once

namespace brisk {

class TrainingJob;

bool run_smoke_test(const TrainingJob& job, bool resume);  // false if it was interrupted

}  // namespace brisk
