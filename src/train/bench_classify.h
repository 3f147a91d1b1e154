// The speed of fine-tuning a classifier of a known shape on a table's own texts: random weights, the real loop.
#pragma once

#include <cstdint>
#include <string>

#include "base/ledger.h"

namespace brisk {

struct ClassifyBenchOptions {
  std::string model = "distilbert";  // distilbert | bert | minilm
  std::string data;                  // a table with texts and labels
  int64_t max_length = 128;
  int64_t batch = 32;              // examples a step
  std::string precision = "auto";  // fp32 | bf16 | auto
  std::string tokenizer;           // "": a WordPiece vocabulary of the texts, kept in the cache
  double seconds = 10;
  int64_t threads = 0;
  int64_t micro_batch_tokens = 0;
  std::string device = "cpu";  // cpu | cuda | cuda:1 | auto
};

struct ClassifyBenchResult {
  double rows_per_second = 0;    // examples
  double tokens_per_second = 0;  // real ones: there are no others
  double gflops = 0, peak_gflops = 0, utilisation = 0;
  double step_ms = 0;  // median
  double mean_length = 0;
  int64_t steps = 0, parameters = 0, peak_memory_bytes = 0;
  std::string precision, isa, reason, device;
  Ledger::Totals ledger;  // of the measured steps
};

ClassifyBenchResult bench_classify(const ClassifyBenchOptions& options);

}  // namespace brisk
