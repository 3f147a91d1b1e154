#include "hub/finite.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "base/rounding.h"
#include "base/runtime.h"
#include "base/text/printable.h"
#include "tensor/half_float.h"

namespace brisk {

namespace {

constexpr int64_t kBlockNumbers = int64_t{1} << 18;

// The bits of the exponent: all of them are set in a NaN and in an infinity, and in nothing else.
template <typename Bits>
bool has_nonfinite(const std::byte* data, int64_t count, Bits exponent) {
  Bits found = 0;
  for (int64_t i = 0; i < count; ++i) {
    Bits bits;
    std::memcpy(&bits, data + i * static_cast<int64_t>(sizeof(Bits)), sizeof(Bits));
    found |= static_cast<Bits>((bits & exponent) == exponent);
  }
  return found != 0;
}

bool has_nonfinite(const SafetensorsEntry& tensor, int64_t first, int64_t count) {
  const auto* data = static_cast<const std::byte*>(tensor.data) + first * size_of(tensor.type);
  switch (tensor.type) {
    case SafetensorsType::f32: return has_nonfinite<uint32_t>(data, count, 0x7F800000u);
    case SafetensorsType::f16: return has_nonfinite<uint16_t>(data, count, 0x7C00u);
    case SafetensorsType::bf16: return has_nonfinite<uint16_t>(data, count, 0x7F80u);
    default: return false;
  }
}

float number_at(const SafetensorsEntry& tensor, int64_t index) {
  const auto* data = static_cast<const std::byte*>(tensor.data) + index * size_of(tensor.type);
  uint32_t bits = 0;
  std::memcpy(&bits, data, static_cast<size_t>(size_of(tensor.type)));
  if (tensor.type == SafetensorsType::f16) return half_to_float(static_cast<uint16_t>(bits));
  if (tensor.type == SafetensorsType::bf16) bits <<= 16;
  float number;
  std::memcpy(&number, &bits, sizeof number);
  return number;
}

[[noreturn]] void complain_of_nonfinite(const std::string& path, const SafetensorsEntry& tensor, size_t others) {
  int64_t bad = 0, first = -1;
  for (int64_t i = 0; i < tensor.count(); ++i) {
    if (!has_nonfinite(tensor, i, 1)) continue;
    if (first < 0) first = i;
    ++bad;
  }
  user_error(
      "{}: '{}' holds {} number{} not finite, the first ({}) at index {} of {}{}; the file is damaged, or the training "
      "that made it diverged: take another one (--allow-nonfinite, or model.allow_nonfinite in a job, lets it in)",
      path, printable(tensor.name), bad, bad == 1 ? " that is" : "s that are", number_at(tensor, first), first,
      tensor.count(), others > 0 ? fmt::format(", and {} other tensor{} too", others, others == 1 ? "" : "s") : "");
}

}  // namespace

void check_finite(const std::string& path, std::span<const SafetensorsEntry* const> tensors) {
  struct Block {
    size_t tensor;
    int64_t first, count;
  };
  std::vector<Block> blocks;
  for (size_t t = 0; t < tensors.size(); ++t) {
    const int64_t count = tensors[t]->count();
    for (int64_t first = 0; first < count; first += kBlockNumbers) {
      blocks.push_back({t, first, std::min(kBlockNumbers, count - first)});
    }
  }
  std::vector<std::atomic<bool>> is_bad(tensors.size());
  thread_pool().for_range(std::ssize(blocks), 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      const Block& block = blocks[static_cast<size_t>(i)];
      if (has_nonfinite(*tensors[block.tensor], block.first, block.count)) is_bad[block.tensor] = true;
    }
  });
  const auto first = std::ranges::find(is_bad, true, [](const std::atomic<bool>& bad) { return bad.load(); });
  if (first == is_bad.end()) return;
  const auto count = std::ranges::count(is_bad, true, [](const std::atomic<bool>& bad) { return bad.load(); });
  complain_of_nonfinite(path, *tensors[static_cast<size_t>(first - is_bad.begin())], static_cast<size_t>(count) - 1);
}

}  // namespace brisk
