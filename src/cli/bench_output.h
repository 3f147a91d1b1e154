// What the benchmarks of `brisk bench` have in common: their options, and how their figures are printed.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "bench/bench_steps.h"
#include "cli/device_option.h"
#include "cli/limits.h"

namespace brisk {

// One JSON object: `json` describes the benchmark, the figures follow.
void print_json(nlohmann::ordered_json json, const BenchFigures& figures);

// A table and a line for people; `rates` and `memory` are what one kind of benchmark adds to the line.
void print_text(const std::string& name, const std::string& rates, const BenchFigures& figures,
                const std::string& memory = "");

// Options of every benchmark.
template <typename Options>
void add_run_options(CLI::App* command, const std::shared_ptr<Options>& arguments) {
  auto& options = arguments->options;
  add_device_option(*command, options.device);
  command
      ->add_option("--precision", options.precision,
                   "Number format of matrix products: fp32, bf16 or auto; on a GPU also tf32, fp16 and fp8")
      ->capture_default_str()
      ->check(CLI::IsMember({"fp32", "tf32", "bf16", "fp16", "fp8", "auto"}));
  command->add_flag_callback(
      "--no-master-weights", [arguments] { arguments->options.master_weights = false; },
      "Keep the layers' weights only in bf16, with stochastic rounding (GPU only)");
  command->add_option("--threads", options.threads, "Number of compute threads, of each rank (default: all cores)")
      ->check(at_least(1));
  command
      ->add_option("--micro-batch-tokens", options.micro_batch_tokens,
                   "Maximum tokens per micro-batch (default: chosen by brisk)")
      ->check(at_least(1));
  command->add_flag("--json", arguments->json, "Print one JSON object on standard output");
}

}  // namespace brisk
