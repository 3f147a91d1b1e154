// `brisk train --smoke-test`: memory of the real job, a few steps of its real model (cli/smoke_test/trial.h), and the whole
// path (tokenizer, training, evaluation, checkpoint, kill, resume, generation, export) with a small stand-in for the model,
// all on a small subset of its own data, in seconds. Each stage of the path is a process of its own, as in a real run, so
// that one can really be killed.
//
//   const TrainingJob job = TrainingJob::load(runtime, path, settings);
//   run_smoke_test(job, false);       // UserError that names the stage that failed; leaves nothing behind
#pragma once

namespace brisk {

class TrainingJob;

bool run_smoke_test(const TrainingJob& job, bool resume);  // false if it was interrupted

}  // namespace brisk
