// Times training of a translator of a given shape on the lines of two files: real steps, random weights.
//
//   TranslateBenchResult result = bench_translate({.source = "train.en", .target = "train.de"});
//   fmt::print("{:.1f} pairs/s\n", result.pairs_per_second);
#pragma once

#include <cstdint>
#include <string>

#include "bench/bench_steps.h"

namespace brisk {

struct TranslateBenchOptions {
  std::string source, target;  // text files, whose lines belong together
  int64_t width = 512;
  int64_t layers = 6;  // of the encoder, and of the decoder
  int64_t d_ff = 0;    // 0: 4 width
  int64_t vocabulary = 10000;
  std::string tokenizer;  // "": a byte-level BPE vocabulary of both texts, kept in the cache
  int64_t max_length = 128;
  int64_t batch = 64;  // pairs a step
  double dropout = 0.1;
  std::string precision = "auto";  // fp32 | tf32 | bf16 | fp16 | fp8 | auto
  bool master_weights = true;
  std::string optimizer = "adamw";  // adamw, as the PyTorch twin's, or muon
  double seconds = 10;
  int64_t threads = 0;
  int64_t micro_batch_tokens = 0;
  std::string device = "cpu";         // cpu | cuda | cuda:1 | auto
  ProcessGroup* processes = nullptr;  // of which this is one; none: it is alone
};

struct TranslateBenchResult : BenchFigures {
  double pairs_per_second = 0;
  double mean_source = 0, mean_target = 0;  // tokens of each; tokens_per_second counts both
};

TranslateBenchResult bench_translate(const TranslateBenchOptions& options);

}  // namespace brisk
