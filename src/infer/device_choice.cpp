#include "infer/device_choice.h"

#include <fmt/ranges.h>

#include <charconv>

#include "base/error.h"
#include "base/machine/isa.h"
#include "base/terminal/terminal.h"
#include "ops/gemm/cuda/gemm_cublaslt_cuda.h"

namespace brisk {

namespace {

DeviceChoice gpu(int number) {
  Device& device = cuda_device(number);
  const CudaGpu& found = *device.gpu();
  return {&device, fmt::format("cuda:{}", number),
          fmt::format("cuda:{}, {}, {}", number, found.name, format_bytes(static_cast<double>(found.memory_bytes)))};
}

}  // namespace

std::string arithmetic_unit(const Device& device) {
  const CudaGpu* gpu = device.gpu();
  if (gpu == nullptr) return std::string(isa_name(active_isa()));
  return fmt::format("{} (compute capability {}.{})", gpu->name, gpu->major, gpu->minor);
}

std::unique_ptr<GpuWatch> watch_gpu(const Device& device) {
  if (device.gpu() == nullptr) return nullptr;
  std::unique_ptr<GpuSensor> sensor = open_gpu_sensor(device.gpu()->bus_id);
  return sensor ? std::make_unique<GpuWatch>(std::move(sensor)) : nullptr;
}

DeviceChoice choose_device(const std::string& asked, const std::string& place) {
  if (asked == "cpu") return {&cpu_device(), "cpu", ""};
  if (asked == "cuda" || asked == "gpu") return gpu(0);
  constexpr std::string_view kGpu = "cuda:";
  if (asked.starts_with(kGpu)) {
    int number = -1;
    const char* end = asked.data() + asked.size();
    const auto [stop, error] = std::from_chars(asked.data() + kGpu.size(), end, number);
    if (error == std::errc() && stop == end && number >= 0) return gpu(number);
  }
  if (asked != "auto")
    user_error("{}: '{}' is not a device; use \"auto\", \"cpu\", \"cuda\" (or \"gpu\") or \"cuda:1\"", place, asked);
  std::string why;
  const std::vector<CudaGpu> gpus = cuda_gpus(&why);
#if BRISK_HAVE_CUDA
  if (!gpus.empty() && gpus.front().major >= 8) {
    const DeviceChoice found = gpu(0);
    if (cuda::has_gemm_library(why)) return found;
    return {&cpu_device(), "cpu", fmt::format("cpu ({})", why)};
  }
#endif
  if (!built_with_cuda()) return {&cpu_device(), "cpu", ""};
  if (why.empty()) why = fmt::format("{} is older than brisk's kernels", gpus.front().name);
  return {&cpu_device(), "cpu", fmt::format("cpu ({})", why)};
}

std::string idle_gpus_text(const std::vector<CudaGpu>& gpus, int used, const char* library) {
  constexpr double kIdle = 0.25;  // of its time: what a screen and other small work take
  std::vector<std::string> idle, numbers;
  for (size_t i = 0; i < gpus.size(); ++i) {
    const auto number = static_cast<int>(i);
    const std::unique_ptr<GpuSensor> sensor = number == used ? nullptr : open_gpu_sensor(gpus[i].bus_id, library);
    const double busy = sensor ? sensor->read().busy_share : -1;
    if (number != used && busy > kIdle) continue;
    numbers.push_back(std::to_string(number));
    if (number == used) continue;
    idle.push_back(fmt::format("cuda:{}{}", number, busy > 0 ? fmt::format(" ({:.0f} % busy)", 100 * busy) : ""));
  }
  if (idle.empty()) return "";
  const bool all = numbers.size() == gpus.size();
  return fmt::format("one process computes on one GPU, and {} {} idle; {}brisk launch -n {} train ... uses {}",
                     fmt::join(idle, ", "), idle.size() == 1 ? "is" : "are",
                     all ? "" : fmt::format("CUDA_VISIBLE_DEVICES={} ", fmt::join(numbers, ",")), numbers.size(),
                     all ? "all of them" : "these");
}

}  // namespace brisk
