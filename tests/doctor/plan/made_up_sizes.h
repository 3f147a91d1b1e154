// Sizes, times and machines with round numbers.
#pragma once

#include "doctor/planning.h"

namespace brisk::test {

// Four layers 256 wide: a step of 1000 tokens, ten of them in an epoch.
inline JobSize made_up_size() {
  JobSize size{.components = {{"embedding", 1'000'000, 0},
                              {"attention projections", 1'000'000, 6e6},
                              {"attention", 0, 1e6},
                              {"feed-forward", 2'000'000, 12e6},
                              {"head (the embedding)", 0, 6e6}},
               .parameters = 4'000'000,
               .trained_parameters = 4'000'000,
               .flop_per_token = 25e6,
               .layers = 4,
               .width = 256,
               .vocabulary = 4000,
               .update_bytes = 28 * 4e6};
  size.memory = {.weights = 16 << 20, .gradients = 16 << 20, .optimizer = 32 << 20, .activations = 64 << 20};
  size.micro_batch_tokens = 1000;
  size.largest_micro_batch_tokens = 100'000;
  size.disk = {.checkpoint = 48 << 20, .saves = 3, .kept = 2, .at_most = 144 << 20, .cache = 1 << 20, .free = 1 << 30};
  size.sequences_per_epoch = 100;
  size.tokens_per_epoch = 10'000;
  size.longest = 128;
  size.validation_sequences = 5;
  size.validation_tokens = 500;
  size.sequences_per_step = 10;
  size.steps_per_epoch = 10;
  size.total_steps = 20;
  return size;
}

// A step of 1000 tokens: 0.6 + 0.1 + 0.2 + 0.1 s and an update of 0.5 s.
inline StepTimes made_up_times() {
  return {.linear = 6e-4,
          .attention = 1e-4,
          .head = 2e-4,
          .rows = 1e-4,
          .update = 0.5,
          .evaluation = 3e-4,
          .save = 0.1,
          .start_up = 1,
          .spread = 0.02,
          .precision = "fp32"};
}

inline MachineRates made_up_machine() {
  return {.name = "a processor",
          .cores = 2,
          .memory_bytes = int64_t{4} << 30,
          .fp32_products = 100,
          .bf16_products = 200,
          .fp32_peak = 300,
          .copy_gb_per_second = 10};
}

}  // namespace brisk::test
