#include "ops/gemm/cuda/gemm_tuning_cuda.h"

#include <fmt/format.h>

#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string_view>

#include "base/error.h"
#include "base/files/cache_directory.h"
#include "base/files/files.h"

namespace brisk::cuda {

ProductChoices::ProductChoices(const std::string& path) {
  if (path.empty()) return;
  try {
    make_directories(std::filesystem::path(path).parent_path().string());
    if (file_exists(path)) {
      std::istringstream lines(read_file(path));
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

const ProductChoices::Algorithm* ProductChoices::find(const Key& key) const {
  const auto found = known_.find(key);
  return found == known_.end() ? nullptr : &found->second;
}

void ProductChoices::add(const Key& key, const Algorithm& algorithm) {
  if (!known_.insert_or_assign(key, algorithm).second || !file_) return;
  file_->append(fmt::format("{} {}\n", fmt::join(key, " "), fmt::join(algorithm, " ")));
}

std::string product_choices_path(const std::string& of, int64_t library_version) {
  const char* timing = std::getenv("BRISK_CUDA_TIMING");
  if (timing != nullptr && std::string_view(timing) == "0") return "";
  std::string name;
  for (const char c : of) name += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '-';
  return fmt::format("{}/products/{}-{}.txt", default_cache_directory(), name, library_version);
}

}  // namespace brisk::cuda
