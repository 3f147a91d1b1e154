#include "base/machine/machine.h"

#include <brisk/ranks.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/machine/isa.h"
#include "base/terminal/terminal.h"
#include "base/threads.h"
#include "bench/rank_transfers.h"
#include "cli/as_ranks.h"
#include "cli/command.h"
#include "comm/communicator.h"
#include "ops/peak/peak.h"
#include "tensor/device.h"
#include "train/engine/process_group.h"

namespace brisk {

namespace {

using Json = nlohmann::ordered_json;

// What is measured here; of several ranks each measures while the others do, too.
struct MeasuredMachine {
  Machine machine;
  MemoryBandwidth bandwidth;
  double peak_f32 = 0, peak_bf16 = 0, product_f32 = 0, product_bf16 = 0;  // GFLOP/s
  std::vector<CudaGpu> gpus;
  std::string no_gpu;
  double gpu_f32 = 0, gpu_bf16 = 0, gpu_copy = 0;  // of the first: a process runs on one
};

// Of several ranks: how fast each is, and what lies between them.
struct MeasuredRanks {
  RankTransfers transfers;
  int of_machine = 1;
  std::vector<double> threads, product_f32, product_bf16, copy;  // of each
};

MeasuredMachine measure(ProcessGroup& processes) {
  MeasuredMachine all{.machine = read_machine()};
  const auto together = [&](const auto& measurement) {
    processes.wait_for_all();
    return measurement();
  };
  all.bandwidth = together([] { return measure_memory_bandwidth(); });
  all.peak_f32 = together([] { return measured_peak_gflops(Arithmetic::f32); });
  all.peak_bf16 = together([] { return measured_peak_gflops(Arithmetic::bf16); });
  all.product_f32 = together([] { return measured_product_gflops(Arithmetic::f32); });
  all.product_bf16 = together([&] { return all.peak_bf16 > 0 ? measured_product_gflops(Arithmetic::bf16) : 0; });
  all.gpus = cuda_gpus(&all.no_gpu);
  if (all.gpus.empty() || !processes.is_first()) return all;
  all.gpu_f32 = gpu_product_gflops(cuda_device(), Arithmetic::f32);
  all.gpu_bf16 = gpu_product_gflops(cuda_device(), Arithmetic::bf16);
  all.gpu_copy = gpu_copy_gb_per_second(cuda_device());
  return all;
}

MeasuredRanks measure_ranks(ProcessGroup& processes, const MeasuredMachine& own) {
  Communicator& ranks = *processes.communicator();
  return {.transfers = measure_transfers(ranks),
          .of_machine = processes.of_machine(),
          .threads = ranks.gather(thread_pool().size()),
          .product_f32 = ranks.gather(own.product_f32),
          .product_bf16 = ranks.gather(own.product_bf16),
          .copy = ranks.gather(own.bandwidth.copy_gb_per_second)};
}

Json ranks_json(const MeasuredRanks& ranks) {
  const auto transfers = [](const std::vector<TransferTime>& times) {
    Json all = Json::array();
    for (const TransferTime& time : times)
      all.push_back({{"bytes", time.bytes}, {"seconds", time.seconds}, {"bytes_per_second", time.bytes_per_second}});
    return all;
  };
  const RankTransfers& between = ranks.transfers;
  return {{"size", between.ranks},
          {"of_machine", ranks.of_machine},
          {"transport", between.transport},
          {"threads", ranks.threads},
          {"product_gflops", {{"fp32", ranks.product_f32}, {"bf16", ranks.product_bf16}}},
          {"copy_gb_per_second", ranks.copy},
          {"barrier_seconds", between.barrier_seconds},
          {"gather_seconds", between.gather_seconds},
          {"sum", transfers(between.sum)},
          {"share", transfers(between.share)}};
}

void print_json(const MeasuredMachine& all, const std::optional<MeasuredRanks>& ranks) {
  const Machine& machine = all.machine;
  Json json = {{"cpu", machine.cpu_model},
               {"system", machine.system},
               {"cores", machine.cores},
               {"logical_processors", machine.logical_processors},
               {"instruction_sets", instruction_set_names(machine.instructions)},
               {"isa", isa_name(active_isa())},
               {"memory_total_bytes", machine.memory_total_bytes},
               {"memory_available_bytes", machine.memory_available_bytes},
               {"huge_pages", machine.huge_pages},
               {"peak_gflops", {{"fp32", all.peak_f32}, {"bf16", all.peak_bf16}}},
               {"product_gflops", {{"fp32", all.product_f32}, {"bf16", all.product_bf16}}},
               {"memory_gb_per_second",
                {{"read", all.bandwidth.read_gb_per_second},
                 {"copy", all.bandwidth.copy_gb_per_second},
                 {"triad", all.bandwidth.triad_gb_per_second}}}};
  for (const Cache& cache : machine.caches) {
    json["caches"].push_back(
        {{"level", cache.level}, {"type", cache.type}, {"bytes", cache.bytes}, {"shared_by", cache.shared_by}});
  }
  for (const CudaGpu& gpu : all.gpus) {
    json["gpus"].push_back({{"name", gpu.name},
                            {"memory_total_bytes", gpu.memory_bytes},
                            {"multiprocessors", gpu.multiprocessors},
                            {"compute_capability", fmt::format("{}.{}", gpu.major, gpu.minor)}});
  }
  if (!all.gpus.empty()) {
    json["gpus"][0]["product_gflops"] = {{"fp32", all.gpu_f32}, {"bf16", all.gpu_bf16}};
    json["gpus"][0]["memory_gb_per_second"] = {{"copy", all.gpu_copy}};
  }
  if (ranks) json["ranks"] = ranks_json(*ranks);
  fmt::print("{}\n", json.dump(2));
}

void add_ranks(Table& table, const MeasuredRanks& ranks) {
  const RankTransfers& between = ranks.transfers;
  table.add_separator();
  table.add_row(
      {"ranks", fmt::format("{}, {} on this machine, by {}; the figures above are those of rank 0 while all measure",
                            between.ranks, ranks.of_machine, between.transport)});
  const auto rates = [&](const char* name, const std::vector<double>& each) {
    const auto slowest = std::min_element(each.begin(), each.end()),
               fastest = std::max_element(each.begin(), each.end());
    if (*fastest <= 0) return;
    table.add_row({name, fmt::format("{:.0f} to {:.0f} GFLOP/s in each rank; the slowest is rank {}", *slowest,
                                     *fastest, slowest - each.begin())});
  };
  rates("fp32 products, at once", ranks.product_f32);
  rates("bf16 products, at once", ranks.product_bf16);
  table.add_row({"barrier", fmt::format("{:.1f} us; a number of each rank to all: {:.1f} us",
                                        1e6 * between.barrier_seconds, 1e6 * between.gather_seconds)});
}

std::string transfer_table(const RankTransfers& between) {
  Table table({{"between ranks", Align::right},
               {"gradients are summed in", Align::right},
               {"each rank sends", Align::right},
               {"weights are shared in", Align::right},
               {"each rank sends", Align::right}});
  const auto time_text = [](double seconds) {
    return seconds < 1e-3 ? fmt::format("{:.1f} us", 1e6 * seconds) : fmt::format("{:.2f} ms", 1e3 * seconds);
  };
  const auto rate_text = [](double rate) { return fmt::format("{:.2f} GB/s", 1e-9 * rate); };
  for (size_t i = 0; i < between.sum.size(); ++i) {
    const TransferTime &sum = between.sum[i], &share = between.share[i];
    table.add_row({format_bytes(static_cast<double>(sum.bytes)), time_text(sum.seconds),
                   rate_text(sum.bytes_per_second), time_text(share.seconds), rate_text(share.bytes_per_second)});
  }
  return table.text();
}

void print_text(const MeasuredMachine& all, const std::optional<MeasuredRanks>& ranks) {
  const Machine& machine = all.machine;
  Table table({"machine", "value"});
  table.add_row({"processor", machine.cpu_model});
  table.add_row({"cores", fmt::format("{} usable of {}", machine.cores, machine.logical_processors)});
  table.add_row({"instruction sets", fmt::format("{}", fmt::join(instruction_set_names(machine.instructions), " "))});
  table.add_row({"kernels in use", std::string(isa_name(active_isa()))});
  for (const Cache& cache : machine.caches) {
    table.add_row({fmt::format("L{} {}", cache.level, cache.type),
                   fmt::format("{}, shared by {}", format_bytes(static_cast<double>(cache.bytes)), cache.shared_by)});
  }
  table.add_row(
      {"memory", fmt::format("{}, {} available", format_bytes(static_cast<double>(machine.memory_total_bytes)),
                             format_bytes(static_cast<double>(machine.memory_available_bytes)))});
  table.add_row({"huge pages", machine.huge_pages});
  for (size_t i = 0; i < all.gpus.size(); ++i) {
    const CudaGpu& gpu = all.gpus[i];
    table.add_row({fmt::format("cuda:{}", i), fmt::format("{}, {}, {} multiprocessors, compute capability {}.{}",
                                                          gpu.name, format_bytes(static_cast<double>(gpu.memory_bytes)),
                                                          gpu.multiprocessors, gpu.major, gpu.minor)});
  }
  if (all.gpus.empty()) table.add_row({"GPUs", fmt::format("none ({})", all.no_gpu)});
  table.add_separator();
  const auto rate = [](double peak, double product) {
    if (peak <= 0) return std::string("not supported");
    return fmt::format("{:.0f} GFLOP/s in registers, {:.0f} in matrix products ({:.0f} %)", peak, product,
                       100 * product / peak);
  };
  table.add_row({"fp32, measured", rate(all.peak_f32, all.product_f32)});
  table.add_row({"bf16, measured", rate(all.peak_bf16, all.product_bf16)});
  table.add_row(
      {"memory, measured", fmt::format("read {:.1f}, copy {:.1f}, triad {:.1f} GB/s", all.bandwidth.read_gb_per_second,
                                       all.bandwidth.copy_gb_per_second, all.bandwidth.triad_gb_per_second)});
  if (!all.gpus.empty()) {
    table.add_row(
        {"cuda:0, measured", fmt::format("matrix products: fp32 {:.1f}, bf16 {:.1f} TFLOP/s; memory: copy {:.0f} GB/s",
                                         1e-3 * all.gpu_f32, 1e-3 * all.gpu_bf16, all.gpu_copy)});
  }
  if (ranks) add_ranks(table, *ranks);
  fmt::print("{}{}", table.text(), ranks ? transfer_table(ranks->transfers) : "");
}

void run_machine(Ranks& ranks, bool as_json) {
  ProcessGroup& processes = ranks.group();
  const MeasuredMachine all = measure(processes);
  std::optional<MeasuredRanks> between;
  if (processes.size() > 1) between = measure_ranks(processes, all);
  if (!processes.is_first()) return;
  if (as_json) {
    print_json(all, between);
  } else {
    print_text(all, between);
  }
}

}  // namespace

void add_machine_command(CLI::App& app, Runtime& runtime) {
  CLI::App* command = app.add_subcommand("machine", "Show the hardware of this machine and its measured speed");
  auto as_json = std::make_shared<bool>(false);
  command->add_flag("--json", *as_json, "Print one JSON object on standard output");
  command->footer(
      "Started as several ranks it tells the latency and bandwidth between them, too, by their transport.\n\n"
      "Examples:\n"
      "  brisk machine --json\n"
      "  brisk launch -n 4 machine\n"
      "  mpirun -np 4 brisk machine --json > ranks.json      # for brisk plan --machine ranks.json");
  command->callback(
      [&runtime, as_json] { run_as_ranks(runtime, [&](Ranks& ranks) { run_machine(ranks, *as_json); }); });
}

}  // namespace brisk
