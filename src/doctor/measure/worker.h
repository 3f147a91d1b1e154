// The process of a measured run: trains a job, a stretch of steps at a time, as it is told over a pipe, and answers with
// what each stretch took. It is `brisk train` in all it does between two stretches, so what is measured is what a run
// would do. The other end is doctor/measure/measured_run.h.
//
// A command is a line of JSON, and so is its answer:
//   {"go": 640}                    steps until 640 more sequences are done    {"block": {...}}
//   {"evaluate": 200}              the first 200 validation sequences         {"seconds": 1.2, "sequences": 200, "of": 5000}
//   {"save": true}                 a checkpoint, in the background            {"seconds": 0.03, "write_seconds": 0.8}
//   {"curve": 64, "seconds": 5}    micro-batches of 1, 2, 4, ... 64 sequences {"points": [[1, 812.0, 0.001], ...]}
//   {"readings": true}             what the run knows of itself               {"readings": "..."} (readings_to_json)
// A point of the curve: sequences, tokens/s of forward and backward, seconds of an update. It is the last command: the
// optimizer's state is not that of a training afterwards. Before the first command it sends {"ready": {...}}. The end of the commands ends it, at once.
#pragma once

#include <string>

namespace brisk {

class ProcessGroup;

struct WorkerOptions {
  std::string job_path;  // resolved
  std::string
      gradient_path;  // where the gradient of the first step goes (doctor/measure/gradient_file.h); empty: nowhere
  int commands = -1, answers = -1;  // descriptors
};

// Of several processes the first one obeys and answers; the others go along, and wait where it stands still.
void run_worker(const WorkerOptions& options, ProcessGroup& processes);

}  // namespace brisk
