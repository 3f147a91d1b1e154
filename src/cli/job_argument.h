// What `brisk train` is given: a job file; or a run, to go on with; or a text, to train the default job on.
//
//   const JobArgument given = look_at_job_argument("runs/bible");   // {kind = run, path = "runs/bible/job.json"}
//
// UserError where it is something else, with what to type instead.
#pragma once

#include <cstdint>
#include <string>

namespace brisk {

struct JobArgument {
  enum class Kind : uint8_t { job, run, text };
  Kind kind = Kind::job;
  std::string path;  // of the job file, or of the text
};

JobArgument look_at_job_argument(const std::string& argument);

}  // namespace brisk
