// The speed of training a given shape: the real loop (loader, clipping, optimizer, logging) over varied tokens.
#pragma once

#include <cstdint>
#include <string>

#include "base/ledger.h"

namespace brisk {

struct BenchOptions {
  std::string shape = "small";      // small | large | production | gpt2
  int64_t batch = 0;                // sequences; 0: the shape's own
  int64_t max_length = 0;           // 0: the shape's own
  std::string precision = "auto";   // fp32 | bf16 | auto
  std::string optimizer = "adamw";  // adamw, as the PyTorch twin's, or muon
  double seconds = 10;
  int64_t threads = 0;
  int64_t micro_batch_tokens = 0;
};

struct BenchResult {
  double tokens_per_second = 0;  // of the median step
  double mean_tokens_per_second = 0;
  double gflops = 0, peak_gflops = 0, utilisation = 0;
  double step_ms = 0;  // median
  int64_t steps = 0;
  int64_t parameters = 0;
  int64_t peak_memory_bytes = 0;
  std::string precision, isa, reason;
  Ledger::Totals ledger;  // of the measured steps
};

BenchResult bench_language_model(const BenchOptions& options);

}  // namespace brisk
