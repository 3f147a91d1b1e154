// Times training of MU by its recipe (docs/mu.md): a step is 32 sequences, its batch of 8 times an accumulation of 4.
//
//   TextTrainingFigures figures = bench_mu({.layers = 12});
#pragma once

#include <cstdint>
#include <string>

#include "bench/bench_text.h"

namespace brisk {

struct MuBenchOptions {
  int64_t layers = 6, vocabulary = 50000, max_length = 128;
  int64_t batch = 32;  // sequences a step
  double dropout = 0.1;
  bool reference = false;          // as it was first written
  std::string precision = "auto";  // fp32 | tf32 | bf16 | fp16 | fp8 | auto
  bool master_weights = true;
  double seconds = 10;
  int64_t threads = 0;
  int64_t micro_batch_tokens = 0;
  std::string device = "cpu";         // cpu | cuda | cuda:1 | auto
  ProcessGroup* processes = nullptr;  // that divide each step; none: this one alone
};

TextTrainingFigures bench_mu(const MuBenchOptions& options);

}  // namespace brisk
