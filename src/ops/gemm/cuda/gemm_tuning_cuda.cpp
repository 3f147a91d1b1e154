#include "ops/gemm/cuda/gemm_tuning_cuda.h"

#include <fmt/format.h>

#include <array>
#include <cctype>
#include <filesystem>
#include <sstream>

#include "base/error.h"
#include "base/files/files.h"
#include "base/runtime.h"
#include "tensor/cuda_runtime.h"

namespace brisk::cuda {

TunedAlgorithms::TunedAlgorithms(const std::string& path) {
  if (path.empty()) return;
  try {
    make_directories(std::filesystem::path(path).parent_path().string());
    if (file_exists(path)) {
      std::istringstream lines(read_file(path, file_kind::tuning));
      for (std::string line; std::getline(lines, line);) {
        std::istringstream numbers(line);
        Key key = {};
        Algorithm algorithm = {};
        for (int64_t& number : key) numbers >> number;
        for (uint64_t& number : algorithm) numbers >> number;
        if (numbers) known_.try_emplace(key, algorithm);  // the first: what other processes have chosen from since
      }
    }
    file_ = std::make_unique<RecordLog>(path);
  } catch (const UserError&) {
    file_ = nullptr;
  }
}

const TunedAlgorithms::Algorithm* TunedAlgorithms::find(const Key& key) const {
  const auto found = known_.find(key);
  return found == known_.end() ? nullptr : &found->second;
}

void TunedAlgorithms::add(const Key& key, const Algorithm& algorithm) {
  if (!known_.insert_or_assign(key, algorithm).second || !file_) return;
  file_->append(fmt::format("{} {}\n", fmt::join(key, " "), fmt::join(algorithm, " ")));
}

namespace {
bool timing_is_allowed = true;  // one runtime computes on the GPU at a time
}

void allow_timing(bool allowed) { timing_is_allowed = allowed; }
bool wants_timing() { return timing_is_allowed && Runtime::current().environment("BRISK_CUDA_TIMING") != "0"; }

std::string gpu_name() {
  cudaDeviceProp properties;
  int gpu = 0;
  stream();  // chooses the GPU
  check(cudaGetDevice(&gpu), "asking for the current GPU");
  check(cudaGetDeviceProperties(&properties, gpu), "asking for the GPU's properties");
  return properties.name;
}

// One runtime computes on the GPU at a time (tensor/device_cuda.cpp), so nobody else is here.
TunedAlgorithms& tuned_algorithms(const std::string& of, int64_t library_version) {
  static std::map<std::array<std::string, 2>, TunedAlgorithms> all;
  const std::string directory = wants_timing() ? Runtime::current().cache_directory() : "";
  std::string name;
  for (const char c : of) name += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '-';
  const std::string path =
      directory.empty() ? "" : fmt::format("{}/products/{}-{}.txt", directory, name, library_version);
  return all.try_emplace({path, of}, path).first->second;
}

}  // namespace brisk::cuda
