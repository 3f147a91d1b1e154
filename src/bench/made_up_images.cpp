#include "bench/made_up_images.h"

#include <algorithm>
#include <utility>

#include "base/random.h"
#include "data/examples/pair_sequences.h"
#include "data/examples/text_frame.h"
#include "data/images/image_sequences.h"

namespace brisk {

namespace {

constexpr int64_t kDifferentImages = 8;
constexpr int64_t kStride = 7919;  // a prime, as in the twin
constexpr TokenId kFirstWord = 5;  // below are special tokens

}  // namespace

MadeUpImages::MadeUpImages(ImageLayout layout, std::variant<Texts, Labels> of_each, int64_t count)
    : layout_(std::move(layout)), of_each_(of_each), count_(count) {
  uint64_t drawn = 0;
  for (const ImageInput& input : layout_.images) {
    std::vector<Image>& images = images_.emplace_back();
    for (int64_t i = 0; i < std::min(count, kDifferentImages); ++i) {
      Image& image = images.emplace_back(input.height, input.width);
      for (uint8_t& pixel : image.pixels) pixel = static_cast<uint8_t>(mix64(++drawn));
    }
  }
}

int MadeUpImages::sets() const { return has_texts() ? static_cast<int>(layout_.images.size()) + 1 : 1; }

int64_t MadeUpImages::text_rows(int64_t index) const {
  const Texts& texts = std::get<Texts>(of_each_);
  const int64_t mean = std::max<int64_t>(1, texts.mean_length);
  return std::max<int64_t>(2, mean / 2 + index % texts.batch * kStride % mean);
}

int64_t MadeUpImages::rows(int64_t index, int set) const {
  if (set == 0) return layout_.images.front().rows();
  if (set == static_cast<int>(kTargetSet)) return has_texts() ? text_rows(index) : 1;
  const auto number = static_cast<size_t>(set);
  return number < first_fixed_set(layout_) ? layout_.images.back().rows()
                                           : layout_.fixed_rows[number - first_fixed_set(layout_)];
}

LengthTotals MadeUpImages::totals(int set) const {
  LengthTotals totals;
  for (int64_t i = 0; i < count_; ++i) totals.add(rows(i, set));
  return totals;
}

void MadeUpImages::append(int64_t index, int64_t /*epoch*/, int32_t sequence, MicroBatch& batch) const {
  const auto image = [&](size_t input) -> const Image& {
    return images_[input][static_cast<size_t>(index) % images_[input].size()];
  };
  append_image_rows(image(0), layout_.images[0], sequence, batch.sets[0]);
  if (const auto* labels = std::get_if<Labels>(&of_each_)) {
    append_picked_first(batch, static_cast<int32_t>(index * kStride % labels->classes));
  } else {
    const int64_t words = std::get<Texts>(of_each_).vocabulary - kFirstWord, length = text_rows(index);
    std::vector<TokenId> tokens;
    for (int64_t i = 0; i <= length; ++i) {
      tokens.push_back(kFirstWord + static_cast<TokenId>((index + 1) * (i + 1) * kStride % words));
    }
    const std::span<const TokenId> all = tokens;
    append_rows(batch.sets[kTargetSet], all.first(all.size() - 1), all.subspan(1), sequence);
    if (layout_.images.size() > 1) append_image_rows(image(1), layout_.images[1], sequence, batch.sets[2]);
  }
  append_fixed_rows(layout_, sequence, batch);
}

}  // namespace brisk
