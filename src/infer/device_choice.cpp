#include "infer/device_choice.h"

#include <charconv>

#include "base/error.h"
#include "base/machine/isa.h"
#include "base/terminal/terminal.h"
#include "ops/gemm/cuda/gemm_cublaslt_cuda.h"

namespace brisk {

namespace {

DeviceChoice card(int number) {
  Device& device = cuda_device(number);
  const CudaCard& found = *device.card();
  return {&device, fmt::format("cuda:{}", number),
          fmt::format("cuda:{}, {}, {}", number, found.name, format_bytes(static_cast<double>(found.memory_bytes)))};
}

}  // namespace

std::string arithmetic_unit(const Device& device) {
  const CudaCard* card = device.card();
  if (card == nullptr) return std::string(isa_name(active_isa()));
  return fmt::format("{} (compute capability {}.{})", card->name, card->major, card->minor);
}

std::unique_ptr<CardWatch> watch_card(const Device& device) {
  if (device.card() == nullptr) return nullptr;
  std::unique_ptr<CardSensor> sensor = open_card_sensor(device.card()->bus_id);
  return sensor ? std::make_unique<CardWatch>(std::move(sensor)) : nullptr;
}

DeviceChoice choose_device(const std::string& asked, const std::string& place) {
  if (asked == "cpu") return {&cpu_device(), "cpu", ""};
  if (asked == "cuda" || asked == "gpu") return card(0);
  constexpr std::string_view kCard = "cuda:";
  if (asked.starts_with(kCard)) {
    int number = -1;
    const char* end = asked.data() + asked.size();
    const auto [stop, error] = std::from_chars(asked.data() + kCard.size(), end, number);
    if (error == std::errc() && stop == end && number >= 0) return card(number);
  }
  if (asked != "auto")
    user_error("{}: '{}' is no device; use \"auto\", \"cpu\", \"cuda\" (or \"gpu\") or \"cuda:1\"", place, asked);
  std::string why;
  const std::vector<CudaCard> cards = cuda_cards(&why);
#if BRISK_HAVE_CUDA
  if (!cards.empty() && cards.front().major >= 8) {
    const DeviceChoice found = card(0);
    if (cuda::has_product_library(why)) return found;
    return {&cpu_device(), "cpu", fmt::format("cpu: {}", why)};
  }
#endif
  if (!built_with_cuda()) return {&cpu_device(), "cpu", ""};
  if (why.empty()) why = fmt::format("{} is older than brisk's kernels", cards.front().name);
  return {&cpu_device(), "cpu", fmt::format("cpu: {}", why)};
}

}  // namespace brisk
