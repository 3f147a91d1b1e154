// Times training of any language model: real steps (loader, clipping, optimizer, logging) on varied tokens.
//
//   TextTrainingFigures figures = bench_text_training({.model = config, .vocab_size = 50000, .max_length = 128, .batch = 32});
#pragma once

#include <cstdint>
#include <string>

#include "bench/bench_steps.h"
#include "models/model_config.h"

namespace brisk {

struct TextTraining {
  ModelConfig model;
  int64_t vocab_size = 0;
  int64_t max_length = 128;
  int64_t batch = 32;              // sequences
  std::string precision = "auto";  // fp32 | tf32 | bf16 | fp16 | fp8 | auto
  bool master_weights = true;
  std::string optimizer = "adamw";  // adamw | muon
  double seconds = 10;
  int64_t threads = 0;
  int64_t micro_batch_tokens = 0;
  std::string device = "cpu";         // cpu | cuda | cuda:1 | auto
  ProcessGroup* processes = nullptr;  // that divide each step; none: this one alone
  // What to make smaller where it does not fit: "--layers, --batch or --max-length".
  std::string sizes;
};

struct TextTrainingFigures : BenchFigures {  // the speed is that of the median step
  double mean_tokens_per_second = 0;
  int64_t batch = 0;
  int64_t threads = 0;
  double flop_per_token = 0;
  // Planned: train/engine/engine.h; nothing is evaluated. Workspaces are part of it, on a GPU cuDNN's too.
  int64_t state_bytes = 0, activation_bytes = 0, workspace_bytes = 0;
  int64_t planned_memory_bytes() const { return state_bytes + activation_bytes + workspace_bytes; }
};

TextTrainingFigures bench_text_training(const TextTraining& training);

}  // namespace brisk
