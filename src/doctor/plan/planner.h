// `brisk plan`: what a job will take, before it is trained.
//
//   const Planning planning = make_plan({.paths = {"job.json"}, .load = load});     // UserError on any problem
//   fmt::print("{}\n", planning_text(planning));
//
// Two things are kept apart: what is counted (doctor/plan/job_size.h: parameters, FLOP, memory, disk) and what is timed
// (doctor/plan/time_steps.h: steps of the job, and of each variation of it that can be timed in seconds). What neither can
// tell (another machine, a model that does not fit, one that would take too long) is scaled from what was timed
// (doctor/plan/scaling.h), and says so.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "doctor/planning.h"

namespace brisk {

struct PlanOptions {
  std::vector<std::string> paths;  // one, or two to be compared
  // A job with these settings ("model.num_layers=4") on top, resolved.
  std::function<Job(const std::string& path, const std::vector<std::string>& settings)> load;
  std::string machine_path;  // empty: this machine
  double seconds = 20;       // about how long it may take; what would take longer is not timed but scaled
};

Planning make_plan(const PlanOptions& options);

}  // namespace brisk
