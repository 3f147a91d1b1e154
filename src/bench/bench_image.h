// Times training of a model of images of a known shape, on images made up in memory: real steps, random weights.
//
//   ImageBenchResult result = bench_image({.shape = "vit-base", .batch = 64});
//   fmt::print("{:.1f} images/s\n", result.rows_per_second);
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/bench_steps.h"

namespace brisk {

struct ImageBenchOptions {
  std::string shape = "vit-base";
  int64_t batch = 32;               // images a step
  std::vector<int64_t> image_size;  // height and width; empty: those of the shape
  int64_t classes = 1000;           // of a classifier
  int64_t length = 512;             // tokens of an image's text on average, of others
  double dropout = 0.1;
  bool frozen = false;             // image encoders are not trained
  bool checkpointing = false;      // every layer is computed again in backward
  std::string precision = "auto";  // fp32 | tf32 | bf16 | fp16 | fp8 | auto
  bool master_weights = true;
  std::string optimizer = "adamw";  // adamw, as the PyTorch twin's, or muon
  double seconds = 10;
  int64_t threads = 0;
  int64_t micro_batch_tokens = 0;
  std::string device = "cpu";         // cpu | cuda | cuda:1 | auto
  ProcessGroup* processes = nullptr;  // of which this is one; none: it is alone
};

struct ImageBenchResult : BenchFigures {
  double rows_per_second = 0;  // images
  double text_tokens_per_second = 0;
  bool writes_texts = false;
};

std::vector<std::string> image_bench_shapes();
ImageBenchResult bench_image(const ImageBenchOptions& options);

}  // namespace brisk
