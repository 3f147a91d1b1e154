// `brisk doctor`: measures why a training is slow, tries the fixes that apply one after another, and proves that the
// result is the same.
//
//   const Diagnosis diagnosis = diagnose(job, {.budget_seconds = 300});
//   fmt::print("{}", diagnosis_text(diagnosis));
//
// Measuring (doctor/measure), judging (doctor/judge), trying (doctor/ladder) and showing (doctor/show) know nothing of each
// other beyond plain data, so that readings from elsewhere can be judged and shown as well.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "doctor/diagnosis.h"

namespace brisk {

struct DoctorOptions {
  std::string job_path;
  std::vector<std::string> settings;  // --set, that are part of the job
  bool naive = false;                 // start from one sequence at a time, padded, in fp32
  double budget_seconds = 300;
  bool changes_maths = false;  // also try fixes that make another training
  // Settings ("training.max_length=64") that are measured because the user asks, before any fix; none of them is kept.
  std::vector<std::string> tries;
  bool verify = false;  // train both jobs to the end
};

// `job`: resolved. UserError where it cannot be trained or the budget is too short for anything. Runtime::cancel() ends it with
// what is known by then, as soon as anything is.
Diagnosis diagnose(const Job& job, const DoctorOptions& options);

}  // namespace brisk
