// The fastest cuBLASLt algorithm for each shape, stored between processes, so that the next run starts at once and
// chooses the same. In the cache directory, one file per GPU and library version, one line per shape.
//
//   TunedAlgorithms algorithms(path);
//   if (const auto* known = algorithms.find(key)) ...
//   algorithms.add(key, algorithm);
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "base/files/record_log.h"

namespace brisk::cuda {

class TunedAlgorithms {
 public:
  using Key = std::array<int64_t, 22>;
  using Algorithm = std::array<uint64_t, 8>;  // a cublasLtMatmulAlgo_t

  // Lines that cannot be read are passed over, and a file that cannot be written is no error: both cost time alone. An
  // empty path remembers those of this process only.
  explicit TunedAlgorithms(const std::string& path);

  const Algorithm* find(const Key& key) const;
  void add(const Key& key, const Algorithm& algorithm);

 private:
  std::map<Key, Algorithm> known_;
  std::unique_ptr<RecordLog> file_;
};

bool wants_timing();     // BRISK_CUDA_TIMING is not 0, and allow_timing() did not forbid it
std::string gpu_name();  // of the one in use

// Choices that are timed may differ between ranks that meet a shape for the first time at once, and so may the last bits. Where
// these are to be the same for any number of ranks, the library's first suggestion is taken.
void allow_timing(bool allowed);

// Those in <the runtime's cache directory>/products/<of>-<library's version>.txt; without a file where !wants_timing().
// `of` names the GPU, and what is chosen where that is not a product's algorithm.
TunedAlgorithms& tuned_algorithms(const std::string& of, int64_t library_version);

}  // namespace brisk::cuda
