// Times training of a language model of a given shape: real steps (loader, clipping, optimizer, logging) on varied tokens.
//
//   BenchResult result = bench_language_model({.shape = "small", .width = 512});       // small, but 512 wide
//   fmt::print("{:.1f} ms a step, {} bytes planned\n", result.step_ms, result.planned_memory_bytes());
#pragma once

#include <cstdint>
#include <string>

#include "bench/bench_text.h"
#include "models/decoder.h"

namespace brisk {

struct BenchOptions {
  std::string shape = "small";  // small | large | production | gpt2
  // 0: the shape's own, and for heads, where a width is given, those that a job of this width has by default.
  int64_t width = 0, layers = 0, vocabulary = 0, heads = 0;
  int64_t batch = 0;               // sequences; 0: the shape's own
  int64_t max_length = 0;          // 0: the shape's own
  std::string precision = "auto";  // fp32 | tf32 | bf16 | fp16 | fp8 | auto
  bool master_weights = true;
  std::string optimizer = "adamw";  // adamw, as the PyTorch twin's, or muon
  double seconds = 10;
  int64_t threads = 0;
  int64_t micro_batch_tokens = 0;
  std::string device = "cpu";         // cpu | cuda | cuda:1 | auto
  ProcessGroup* processes = nullptr;  // that divide each step; none: this one alone
};

struct BenchResult : TextTrainingFigures {
  DecoderConfig model;  // what was measured
};

BenchResult bench_language_model(const BenchOptions& options);

}  // namespace brisk
