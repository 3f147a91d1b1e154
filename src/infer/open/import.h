// A model of another program becomes a run directory: job.json, tokenizer.json and one checkpoint, of step 0.
//
//   import_model("gpt2", "", "runs/gpt2");      // then: brisk generate runs/gpt2, or "model": {"from": "runs/gpt2"}
#pragma once

#include <cstdint>
#include <string>

#include "hub/finite.h"
#include "job/job.h"

namespace brisk {

struct ImportResult {
  std::string kind;  // what it was: "Hugging Face folder"
  Job job;           // of the run
  bool has_head = true;
  int64_t parameters = 0;
  int64_t bytes = 0;  // of the checkpoint
};

// `tokenizer_path`, where given, replaces the tokenizer found with the model. UserError where anything is missing; then
// nothing is left behind.
ImportResult import_model(const std::string& path, const std::string& tokenizer_path, const std::string& run_path,
                          NonFinite nonfinite = NonFinite::refuse);

}  // namespace brisk
