#include "train/device_choice.h"

#include <charconv>

#include "base/error.h"
#include "base/terminal.h"

namespace brisk {

namespace {

DeviceChoice card(int number) {
  Device& device = cuda_device(number);
  const CudaCard found = cuda_cards().at(static_cast<size_t>(number));
  return {&device, fmt::format("cuda:{}", number),
          fmt::format("cuda:{}, {}, {}", number, found.name, format_bytes(static_cast<double>(found.memory_bytes)))};
}

}  // namespace

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
  if (!cards.empty() && cards.front().major >= 8) return card(0);
  if (!built_with_cuda()) return {&cpu_device(), "cpu", ""};
  if (why.empty()) why = fmt::format("{} is older than brisk's kernels", cards.front().name);
  return {&cpu_device(), "cpu", fmt::format("cpu: {}", why)};
}

}  // namespace brisk
