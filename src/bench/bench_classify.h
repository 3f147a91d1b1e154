// Times fine-tuning of a classifier of a known shape on the texts of a table: real steps, random weights.
//
//   ClassifyBenchResult result = bench_classify({.model = "distilbert", .data = "reviews.csv", .max_length = 128});
//   fmt::print("{:.1f} rows/s\n", result.rows_per_second);
#pragma once

#include <cstdint>
#include <string>

#include "bench/bench_steps.h"

namespace brisk {

struct ClassifyBenchOptions {
  std::string model = "distilbert";     // distilbert | bert | minilm
  std::string data;                     // a table with texts and labels
  std::string text_field, label_field;  // its columns; "": found
  int64_t max_length = 128;
  int64_t batch = 32;              // examples a step
  std::string precision = "auto";  // fp32 | tf32 | bf16 | fp16 | fp8 | auto
  bool master_weights = true;
  std::string tokenizer;  // "": a WordPiece vocabulary of the texts, kept in the cache
  double seconds = 10;
  int64_t threads = 0;
  int64_t micro_batch_tokens = 0;
  std::string device = "cpu";         // cpu | cuda | cuda:1 | auto
  ProcessGroup* processes = nullptr;  // that divide each step; none: this one alone
};

struct ClassifyBenchResult : BenchFigures {
  double rows_per_second = 0;  // examples
  double mean_length = 0;
};

ClassifyBenchResult bench_classify(const ClassifyBenchOptions& options);

}  // namespace brisk
