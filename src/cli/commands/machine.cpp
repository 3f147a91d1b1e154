#include "base/machine/machine.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/machine/isa.h"
#include "base/terminal/terminal.h"
#include "base/threads.h"
#include "cli/command.h"
#include "ops/peak/peak.h"
#include "tensor/device.h"

namespace brisk {

namespace {

void run_machine(bool as_json) {
  const Machine machine = read_machine();
  const MemoryBandwidth bandwidth = measure_memory_bandwidth();
  const double peak_f32 = measured_peak_gflops(Arithmetic::f32), peak_bf16 = measured_peak_gflops(Arithmetic::bf16);
  const double product_f32 = measured_product_gflops(Arithmetic::f32);
  const double product_bf16 = peak_bf16 > 0 ? measured_product_gflops(Arithmetic::bf16) : 0;
  const std::vector<std::string> sets = instruction_set_names(machine.instructions);
  std::string no_gpu;
  const std::vector<CudaGpu> gpus = cuda_gpus(&no_gpu);
  // Only the first GPU is measured: a process runs on one.
  const double gpu_f32 = gpus.empty() ? 0 : gpu_product_gflops(cuda_device(), Arithmetic::f32);
  const double gpu_bf16 = gpus.empty() ? 0 : gpu_product_gflops(cuda_device(), Arithmetic::bf16);
  const double gpu_copy = gpus.empty() ? 0 : gpu_copy_gb_per_second(cuda_device());
  if (as_json) {
    nlohmann::ordered_json json = {{"cpu", machine.cpu_model},
                                   {"system", machine.system},
                                   {"cores", machine.cores},
                                   {"logical_processors", machine.logical_processors},
                                   {"instruction_sets", sets},
                                   {"isa", isa_name(active_isa())},
                                   {"memory_total_bytes", machine.memory_total_bytes},
                                   {"memory_available_bytes", machine.memory_available_bytes},
                                   {"huge_pages", machine.huge_pages},
                                   {"peak_gflops", {{"fp32", peak_f32}, {"bf16", peak_bf16}}},
                                   {"product_gflops", {{"fp32", product_f32}, {"bf16", product_bf16}}},
                                   {"memory_gb_per_second",
                                    {{"read", bandwidth.read_gb_per_second},
                                     {"copy", bandwidth.copy_gb_per_second},
                                     {"triad", bandwidth.triad_gb_per_second}}}};
    for (const Cache& cache : machine.caches) {
      json["caches"].push_back(
          {{"level", cache.level}, {"type", cache.type}, {"bytes", cache.bytes}, {"shared_by", cache.shared_by}});
    }
    for (const CudaGpu& gpu : gpus) {
      json["gpus"].push_back({{"name", gpu.name},
                              {"memory_total_bytes", gpu.memory_bytes},
                              {"multiprocessors", gpu.multiprocessors},
                              {"compute_capability", fmt::format("{}.{}", gpu.major, gpu.minor)}});
    }
    if (!gpus.empty()) {
      json["gpus"][0]["product_gflops"] = {{"fp32", gpu_f32}, {"bf16", gpu_bf16}};
      json["gpus"][0]["memory_gb_per_second"] = {{"copy", gpu_copy}};
    }
    fmt::print("{}\n", json.dump(2));
    return;
  }
  Table table({"machine", "value"});
  table.add_row({"processor", machine.cpu_model});
  table.add_row({"cores", fmt::format("{} usable of {}", machine.cores, machine.logical_processors)});
  table.add_row({"instruction sets", fmt::format("{}", fmt::join(sets, " "))});
  table.add_row({"kernels in use", std::string(isa_name(active_isa()))});
  for (const Cache& cache : machine.caches) {
    table.add_row({fmt::format("L{} {}", cache.level, cache.type),
                   fmt::format("{}, shared by {}", format_bytes(static_cast<double>(cache.bytes)), cache.shared_by)});
  }
  table.add_row(
      {"memory", fmt::format("{}, {} available", format_bytes(static_cast<double>(machine.memory_total_bytes)),
                             format_bytes(static_cast<double>(machine.memory_available_bytes)))});
  table.add_row({"huge pages", machine.huge_pages});
  for (size_t i = 0; i < gpus.size(); ++i) {
    table.add_row(
        {fmt::format("cuda:{}", i), fmt::format("{}, {}, {} multiprocessors, compute capability {}.{}", gpus[i].name,
                                                format_bytes(static_cast<double>(gpus[i].memory_bytes)),
                                                gpus[i].multiprocessors, gpus[i].major, gpus[i].minor)});
  }
  if (gpus.empty()) table.add_row({"GPUs", fmt::format("none ({})", no_gpu)});
  table.add_separator();
  const auto rate = [](double peak, double product) {
    if (peak <= 0) return std::string("not supported");
    return fmt::format("{:.0f} GFLOP/s in registers, {:.0f} in matrix products ({:.0f} %)", peak, product,
                       100 * product / peak);
  };
  table.add_row({"fp32, measured", rate(peak_f32, product_f32)});
  table.add_row({"bf16, measured", rate(peak_bf16, product_bf16)});
  table.add_row(
      {"memory, measured", fmt::format("read {:.1f}, copy {:.1f}, triad {:.1f} GB/s", bandwidth.read_gb_per_second,
                                       bandwidth.copy_gb_per_second, bandwidth.triad_gb_per_second)});
  if (!gpus.empty()) {
    table.add_row(
        {"cuda:0, measured", fmt::format("matrix products: fp32 {:.1f}, bf16 {:.1f} TFLOP/s; memory: copy {:.0f} GB/s",
                                         1e-3 * gpu_f32, 1e-3 * gpu_bf16, gpu_copy)});
  }
  fmt::print("{}", table.text());
}

}  // namespace

void add_machine_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("machine", "Show the hardware of this machine and its measured speed");
  auto as_json = std::make_shared<bool>(false);
  command->add_flag("--json", *as_json, "Print one JSON object on standard output");
  command->footer("Example:\n  brisk machine --json");
  command->callback([as_json] { run_machine(*as_json); });
}

}  // namespace brisk
