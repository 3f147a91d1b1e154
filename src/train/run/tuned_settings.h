// What was decided by timing, saved with every checkpoint so that a resumed run does not decide otherwise; and whether
// a job is the one a run was started with.
//
//   const Choices choices{.compute_type = DType::bf16, .micro_batch_tokens = 2048, .isa = "amx", .threads = 2};
//   state.choices_json = choices_to_json(choices);
//   Choices again = choices_from_json(state.choices_json, "runs/bible");      // of a resumed run
//   check_same_job(read_file(run.job_path()), run.job_path(), job);           // UserError: it changed
#pragma once

#include <cstdint>
#include <string>

#include "infer/precision.h"
#include "job/job.h"
#include "tensor/dtype.h"

namespace brisk {

struct Choices {
  DType compute_type = DType::f32;
  int64_t micro_batch_tokens = 0;
  // Where it was made. Elsewhere the curve goes on, but not to the bit.
  std::string isa;
  int64_t threads = 0;
  ProductFormat products = ProductFormat::own;
};

std::string choices_to_json(const Choices& choices);
Choices choices_from_json(const std::string& text, const std::string& source);

// UserError when `job` differs from the run's saved job in a setting that decides the loss curve.
void check_same_job(const std::string& saved_text, const std::string& saved_path, const Job& job);

}  // namespace brisk
