#include "doctor/plan/machine_file.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/files/files.h"
#include "base/parse_json.h"
#include "infer/device_choice.h"
#include "train/run/plan/resource_checks.h"

namespace brisk {

namespace {

using Json = nlohmann::ordered_json;
constexpr const char* kFix = "write one on that machine with: brisk machine --json > machine.json";

constexpr const char* kFixOfRanks = "write one with: brisk launch -n N machine --json > ranks.json";

// CUDA's context, before anything is allocated.
constexpr int64_t kContextBytes = int64_t{512} << 20;

class MachineFile {
 public:
  explicit MachineFile(const std::string& path)
      : path_(path), json_(parse_json<Json>(read_file(path, file_kind::config), path, kFix)) {
    if (!json_.is_object()) user_error("{}: {} where a machine was expected; {}", path, json_in_message(json_), kFix);
  }

  // {"product_gflops": {"fp32": 180}}: number(json, "product_gflops", "fp32")
  double number(const Json& in, const char* key, const char* inner = nullptr) const {
    const Json* value = in.contains(key) ? &in[key] : nullptr;
    if (value != nullptr && inner != nullptr)
      value = value->is_object() && value->contains(inner) ? &(*value)[inner] : nullptr;
    const std::string name = inner != nullptr ? fmt::format("{}.{}", key, inner) : std::string(key);
    if (value == nullptr) user_error("{}: no \"{}\", so it is no machine; {}", path_, name, kFix);
    if (!value->is_number() || value->get<double>() < 0)
      user_error("{}: \"{}\" is {}, expected a number of 0 or more; {}", path_, name, json_in_message(*value), kFix);
    return value->get<double>();
  }

  MachineRates rates(bool may_use_gpu) const {
    MachineRates rates{.path = path_,
                       .cores = static_cast<int64_t>(number(json_, "cores")),
                       .fp32_products = number(json_, "product_gflops", "fp32"),
                       .bf16_products = number(json_, "product_gflops", "bf16"),
                       .fp32_peak = number(json_, "peak_gflops", "fp32"),
                       .copy_gb_per_second = number(json_, "memory_gb_per_second", "copy")};
    rates.memory_bytes = static_cast<int64_t>(number(json_, "memory_available_bytes"));
    if (json_.contains("cpu") && json_["cpu"].is_string()) rates.name = json_["cpu"].get<std::string>();
    const bool has_gpu = json_.contains("gpus") && json_["gpus"].is_array() && !json_["gpus"].empty();
    if (has_gpu && may_use_gpu) take_gpu(json_["gpus"][0], rates);
    if (json_.contains("ranks")) take_ranks(json_["ranks"], rates);
    if (rates.fp32_products <= 0 || rates.copy_gb_per_second <= 0)
      user_error("{}: a machine that multiplies or copies nothing; {}", path_, kFix);
    return rates;
  }

 private:
  double number_or(const Json& in, const char* key, double otherwise, const char* inner = nullptr) const {
    return in.contains(key) ? number(in, key, inner) : otherwise;
  }

  // Ranks that were measured together, or described by latency and bandwidth.
  void take_ranks(const Json& json, MachineRates& rates) const {
    if (!json.is_object())
      user_error("{}: \"ranks\" is {}, expected an object; {}", path_, json_in_message(json), kFixOfRanks);
    RankNetwork ranks{.size = static_cast<int64_t>(number(json, "size")),
                      .of_machine = static_cast<int64_t>(number_or(json, "of_machine", 1)),
                      .latency_seconds = number_or(json, "latency_seconds", 0),
                      .bytes_per_second = number_or(json, "bytes_per_second", 0),
                      .gather_seconds = number_or(json, "gather_seconds", 0)};
    if (ranks.size < 1 || ranks.of_machine < 1 || ranks.of_machine > ranks.size)
      user_error("{}: {} ranks, of which {} on a machine; {}", path_, ranks.size, ranks.of_machine, kFixOfRanks);
    if (json.contains("transport") && json["transport"].is_string())
      ranks.transport = json["transport"].get<std::string>();
    ranks.sum_overlap = std::min(1.0, number_or(json, "sum_overlap", 0));
    ranks.share_overlap = std::min(1.0, number_or(json, "share_overlap", 0));
    ranks.sum = transfers(json, "sum");
    ranks.share = transfers(json, "share");
    if (ranks.size > 1 && ranks.bytes_per_second <= 0 && (ranks.sum.empty() || ranks.share.empty())) {
      user_error("{}: \"ranks\" has neither \"bytes_per_second\" nor measured \"sum\" and \"share\"; {}", path_,
                 kFixOfRanks);
    }
    ranks.threads = static_cast<int64_t>(least(json, "threads"));
    if (!rates.on_gpu && json.contains("product_gflops") && json["product_gflops"].is_object()) {
      ranks.fp32_products = least(json["product_gflops"], "fp32");
      ranks.bf16_products = least(json["product_gflops"], "bf16");
    }
    if (!rates.on_gpu) ranks.copy = least(json, "copy_gb_per_second");
    // The slowest decides when a step ends.
    if (ranks.fp32_products > 0) rates.fp32_products = ranks.fp32_products;
    if (ranks.bf16_products > 0) rates.bf16_products = ranks.bf16_products;
    if (ranks.copy > 0) rates.copy_gb_per_second = ranks.copy;
    if (!rates.on_gpu) rates.memory_bytes /= ranks.of_machine;
    rates.ranks = std::move(ranks);
  }

  // Of a list of numbers; 0: there is none.
  double least(const Json& in, const char* key) const {
    if (!in.contains(key) || !in[key].is_array() || in[key].empty()) return 0;
    double least = 0;
    for (const Json& value : in[key]) {
      if (!value.is_number() || value.get<double>() < 0)
        user_error("{}: \"{}\" holds {}, expected numbers of 0 or more; {}", path_, key, json_in_message(value),
                   kFixOfRanks);
      least = least == 0 ? value.get<double>() : std::min(least, value.get<double>());
    }
    return least;
  }

  std::vector<RankNetwork::Transfer> transfers(const Json& in, const char* key) const {
    std::vector<RankNetwork::Transfer> all;
    if (!in.contains(key)) return all;
    if (!in[key].is_array())
      user_error("{}: \"{}\" is {}, expected a list; {}", path_, key, json_in_message(in[key]), kFixOfRanks);
    for (const Json& each : in[key]) {
      if (!each.is_object())
        user_error("{}: \"{}\" holds {}, expected objects; {}", path_, key, json_in_message(each), kFixOfRanks);
      all.push_back({.bytes = number(each, "bytes"), .seconds = number(each, "seconds")});
      if (all.size() > 1 && all.back().bytes <= all[all.size() - 2].bytes)
        user_error("{}: \"{}\": its bytes do not grow; {}", path_, key, kFixOfRanks);
      if (all.back().bytes <= 0) user_error("{}: \"{}\": a transfer of 0 bytes; {}", path_, key, kFixOfRanks);
    }
    return all;
  }

  // A job trains on the first GPU where there is one.
  void take_gpu(const Json& gpu, MachineRates& rates) const {
    if (!gpu.is_object()) user_error("{}: \"gpus\" holds {}, expected a GPU; {}", path_, json_in_message(gpu), kFix);
    rates.on_gpu = true;
    if (gpu.contains("name") && gpu["name"].is_string()) rates.name = gpu["name"].get<std::string>();
    rates.memory_bytes =
        static_cast<int64_t>(number(gpu, "memory_total_bytes")) - kContextBytes - kGpuLibraryBytes + kProgramBytes;
    rates.fp32_products = number(gpu, "product_gflops", "fp32");
    rates.bf16_products = number(gpu, "product_gflops", "bf16");
    rates.fp32_peak = 0;
    rates.copy_gb_per_second = number(gpu, "memory_gb_per_second", "copy");
  }

  std::string path_;
  Json json_;
};

double rate_of(const std::map<std::string, double>& rates, const char* precision) {
  const auto found = rates.find(precision);
  return found != rates.end() ? found->second : 0;
}

}  // namespace

MachineRates read_machine_file(const std::string& path, bool may_use_gpu) {
  return MachineFile(path).rates(may_use_gpu);
}

MachineRates machine_rates_of(const MachineReadings& readings, const Device& device) {
  const bool on_gpu = device.is_cuda();
  return {.name = on_gpu ? arithmetic_unit(device) : readings.cpu_model,
          .cores = readings.cores,
          .memory_bytes = memory_for_engine(device) + kProgramBytes,
          .on_gpu = on_gpu,
          .fp32_products = rate_of(readings.product_gflops, "fp32"),
          .bf16_products = rate_of(readings.product_gflops, "bf16"),
          .fp32_peak = on_gpu ? 0 : rate_of(readings.peak_gflops, "fp32"),
          .copy_gb_per_second = readings.memory_gb_per_second};
}

}  // namespace brisk
