// Readings of a small decoder that trains as well as its machine can: four cores, 96 % of an epoch's time in its steps. Tests
// change what their rule looks at; `spend` keeps the stretch at ten seconds, so that shares can be read off.
//
//   Readings readings = healthy_readings();
//   spend(readings, Phase::data_wait, 3.0);      // 30 % of the steps, 28.8 % of an epoch
#pragma once

#include <cmath>
#include <string>
#include <utility>

#include "doctor/readings/readings.h"

namespace brisk::test {

inline int64_t nanoseconds(double seconds) { return std::llround(1e9 * seconds); }

// At the cost of the backward products.
inline void spend(Readings& readings, Phase phase, double seconds) {
  auto& ledger = readings.stretch.ledger.nanoseconds;
  int64_t& its = ledger[static_cast<size_t>(phase)];
  ledger[static_cast<size_t>(Phase::backward_linear)] += its - nanoseconds(seconds);
  its = nanoseconds(seconds);
}

inline Readings healthy_readings(const std::string& job = R"({"model": {"d_model": 256, "num_layers": 4}})") {
  Readings readings;
  readings.job = job_from_json_text(job, "job.json");
  resolve_defaults(readings.job);
  readings.job.training.batch_size = 32;
  readings.job.training.num_epochs = 2;
  readings.job.training.learning_rate = 0.004;
  readings.job.training.muon_learning_rate = 0.01;
  readings.machine = {.cpu_model = "a processor",
                      .isa = "avx512",
                      .cores = 4,
                      .logical_processors = 4,
                      .memory_total_bytes = 64'000'000'000,
                      .memory_available_bytes = 60'000'000'000,
                      .peak_gflops = {{"fp32", 150}},
                      .product_gflops = {{"fp32", 100}},
                      .memory_gb_per_second = 20,
                      .no_gpu = "this brisk was built without CUDA",
                      .visible_devices = "unset"};
  readings.data = {.sequences = 38'400,
                   .tokens = 3'840'000,
                   .longest = 128,
                   .median = 100,
                   .p90 = 126,
                   .p99 = 128,
                   .mean = 100,
                   .lengths = {{72, 128, 38'400}},
                   .cut = 0,
                   .padded_rows = 3'840'000,
                   .distinct_tokens = 8000,
                   .file_system = ""};
  readings.model = {.parameters = 4'000'000,
                    .trained_parameters = 4'000'000,
                    .vocabulary = 8192,
                    .width = 256,
                    .layers = 4,
                    .flop_per_token = 24e6,
                    .components = {{"embedding", 2'000'000, 0}, {"layers", 2'000'000, 24e6}},
                    .attention_flop_share = 0.03,
                    .head_flop_share = 0.2,
                    .optimizer_bytes = 64'000'000,
                    .precision = "fp32"};
  StretchReadings& stretch = readings.stretch;
  stretch = {.steps = 50,
             .micro_batches = 50,
             .sequences = 1600,
             .tokens = 160'000,
             .rows = 160'000,
             .targets = 158'400,
             .seconds = 10,
             .median_step_seconds = 0.2,
             .forwards_per_step = 1,
             .user_seconds = 39,
             .system_seconds = 0.5,
             .other_seconds = 0.5,
             .threads = 4,
             .minor_faults = 100,
             .major_faults = 0,
             .swapped_bytes = 0,
             .throttled_seconds = 0,
             .disk_wait_seconds = 0,
             .peak_memory_bytes = 550'000'000,
             .planned_memory_bytes = 500'000'000,
             .sequences_per_step = 32};
  for (const auto& [phase, seconds] : {std::pair(Phase::forward_linear, 2.0),
                                       {Phase::backward_linear, 4.0},
                                       {Phase::forward_attention, 0.3},
                                       {Phase::backward_attention, 0.5},
                                       {Phase::forward_norm, 0.1},
                                       {Phase::backward_norm, 0.2},
                                       {Phase::forward_elementwise, 0.1},
                                       {Phase::backward_elementwise, 0.2},
                                       {Phase::forward_embedding, 0.05},
                                       {Phase::backward_embedding, 0.05},
                                       {Phase::loss, 1.8},
                                       {Phase::clipping, 0.1},
                                       {Phase::optimizer, 0.4},
                                       {Phase::data_wait, 0.05},
                                       {Phase::other, 0.15}})
    stretch.ledger.nanoseconds[static_cast<size_t>(phase)] = nanoseconds(seconds);
  // Ten of 250 seconds.
  readings.course = {.evaluation_seconds = 1.8,
                     .evaluations_per_epoch = 5,
                     .save_seconds = 0.5,
                     .saves_per_epoch = 1,
                     .logging_seconds = 0.004,
                     .loggings_per_epoch = 125,
                     .steps_per_epoch = 1200,
                     .epochs = 2,
                     .start_up_seconds = 1};
  readings.vital_signs = {.measured = true,
                          .tensors = 52,
                          .tensors_changed = 52,
                          .tensors_with_gradient = 52,
                          .first_loss = 9.02,
                          .expected_first_loss = 9.01,
                          .last_loss = 6.5,
                          .forwards_per_step = 1,
                          .target_share = 0.99,
                          .examples = {"Once upon a time"}};
  readings.batch_curve = {{8, 12'000, -1, 200'000'000},
                          {16, 15'000, -1, 300'000'000},
                          {32, 16'000, -1, 500'000'000},
                          {64, 16'200, -1, 900'000'000}};
  readings.thread_curve = {{1, 4500}, {2, 8600}, {4, 16'000}};
  readings.rate_curve = {{0.3, 0, 4.2}, {1, 0, 4.0}, {3, 0, 4.3}};
  readings.history = {.training = {}, .validation = {}, .steps_per_epoch = 1200, .best_by = "loss"};
  for (int step = 10; step <= 2400; step += 10) readings.history.training.emplace_back(step, 9 - 2 * std::log10(step));
  for (int step = 240; step <= 2400; step += 240)
    readings.history.validation.emplace_back(step, 9.1 - 2 * std::log10(step));
  return readings;
}

inline Readings healthy_readings_on_gpu() {
  Readings readings = healthy_readings();
  readings.machine.gpus = {"a GPU"};
  readings.machine.no_gpu = "";
  readings.machine.product_gflops = {{"fp32", 50'000}, {"tf32", 400'000}, {"bf16", 700'000}};
  readings.model.precision = "bf16";
  readings.stretch.gpu = {.name = "a GPU",
                          .busy_share = 0.98,
                          .idle_share = 0.02,
                          .copy_share = 0.01,
                          .kernels_per_step = 500,
                          .mean_kernel_seconds = 300e-6,
                          .launch_seconds = 4e-6,
                          .tensor_core_share = 0.95,
                          .sm_mhz = 1980,
                          .max_sm_mhz = 1980,
                          .watts = 500,
                          .watt_limit = 700,
                          .celsius = 60,
                          .throttled = {{"power cap", 0.0}},
                          .memory_used_bytes = 20'000'000'000,
                          .memory_bytes = 140'000'000'000};
  return readings;
}

}  // namespace brisk::test
