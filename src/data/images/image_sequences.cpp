#include "data/images/image_sequences.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "image/process.h"

namespace brisk {

namespace {

LengthTotals totals_of_equal(int64_t count, int64_t rows) {
  if (count == 0) return {};
  return {.longest = rows,
          .rows = count * rows,
          .squares = static_cast<double>(count) * static_cast<double>(rows) * static_cast<double>(rows)};
}

// `count` more rows that count up, of one sequence.
void append_numbered(MicroBatch::Set& set, int64_t count, int32_t sequence) {
  const size_t begin = set.position.size(), end = begin + static_cast<size_t>(count);
  set.position.resize(end);
  std::iota(set.position.begin() + static_cast<std::ptrdiff_t>(begin), set.position.end(), 0);
  set.sequence.resize(end, sequence);
  set.end_sequence(end);
}

}  // namespace

void append_image_rows(const Image& image, const ImageInput& input, int32_t sequence, MicroBatch::Set& set) {
  // (Space for the rows is made when a micro-batch is begun.)
  if (set.pixels.empty())
    set.pixels.reserve(std::max<size_t>(set.tokens.capacity(), 1) * static_cast<size_t>(input.cols()));
  append_patches(image, input, set.pixels);
  append_image_places(input, sequence, set);
}

void append_image_places(const ImageInput& input, int32_t sequence, MicroBatch::Set& set) {
  if (input.class_row) set.tokens.push_back(1);
  set.tokens.resize(set.tokens.size() + static_cast<size_t>(input.patches()), 0);
  append_numbered(set, input.rows(), sequence);
}

void append_fixed_rows(const ImageLayout& layout, int32_t sequence, MicroBatch& batch) {
  for (size_t i = 0; i < layout.fixed_rows.size(); ++i) {
    MicroBatch::Set& set = batch.derived_set(first_fixed_set(layout) + i, 0);
    append_numbered(set, layout.fixed_rows[i], sequence);
    set.tokens.insert(set.tokens.end(), set.position.end() - layout.fixed_rows[i], set.position.end());
  }
}

ImageSequences::ImageSequences(ExampleSet examples, std::shared_ptr<const ImageStore> store, ImageLayout layout)
    : examples_(std::move(examples)), store_(std::move(store)), layout_(std::move(layout)) {
  BRISK_CHECK(!layout_.images.empty() && layout_.images.size() <= 2, "{} image inputs", layout_.images.size());
  BRISK_CHECK(store_->inputs() == layout_.images, "a store of other image inputs");
}

void ImageSequences::prefetch(std::span<const int64_t> indices) const {
  if (features_) return;
  std::vector<int64_t> images;
  for (const int64_t index : indices) images.push_back(examples_.row_of(index));
  store_->prefetch(images);
}

ImageTextSequences::ImageTextSequences(ExampleSet examples, std::shared_ptr<const ImageStore> store, ImageLayout layout,
                                       PairFrame frame, int64_t most_target_rows)
    : ImageSequences(std::move(examples), std::move(store), std::move(layout)),
      frame_(std::move(frame)),
      most_target_rows_(most_target_rows) {
  BRISK_CHECK(most_target_rows >= frame_.target_rows(1), "targets of {} rows", most_target_rows);
  for (int64_t i = 0; i < count(); ++i) target_totals_.add(rows(i, static_cast<int>(kTargetSet)));
}

int64_t ImageTextSequences::target_text_tokens(int64_t index) const {
  return std::min(examples_.data().lengths_of(examples_.row_of(index)).second,
                  most_target_rows_ - frame_.target_rows(0));
}

int64_t ImageTextSequences::rows(int64_t index, int set) const {
  if (set == static_cast<int>(kTargetSet)) return frame_.target_rows(target_text_tokens(index));
  return layout_.images[set == 0 ? 0 : 1].rows();
}

LengthTotals ImageTextSequences::totals(int set) const {
  if (set == static_cast<int>(kTargetSet)) return target_totals_;
  if (set < sets()) return totals_of_equal(count(), layout_.images[set == 0 ? 0 : 1].rows());
  return totals_of_equal(count(), layout_.fixed_rows[static_cast<size_t>(set) - first_fixed_set(layout_)]);
}

std::vector<TokenId> ImageTextSequences::target_tokens(int64_t index) const {
  const int64_t row = examples_.row_of(index);
  std::vector<TokenId> tokens(static_cast<size_t>(examples_.data().lengths_of(row).second));
  if (!tokens.empty()) examples_.data().copy(examples_.data().place_of(row, 1), std::ssize(tokens), tokens.data());
  return tokens;
}

void ImageTextSequences::append(int64_t index, int64_t /*epoch*/, int32_t sequence, MicroBatch& batch) const {
  const ImageStore::Images images = features_ ? nullptr : this->images(index);
  const auto append_rows_of = [&](size_t input, MicroBatch::Set& set) {
    if (images) {
      append_image_rows((*images)[input], layout_.images[input], sequence, set);
    } else {
      append_image_places(layout_.images[input], sequence, set);
    }
  };
  append_rows_of(0, batch.sets[0]);
  std::vector<TokenId> target = {frame_.start};
  target.insert(target.end(), frame_.target_prefix.begin(), frame_.target_prefix.end());
  const size_t at = target.size();
  const int64_t tokens = target_text_tokens(index);
  target.resize(at + static_cast<size_t>(tokens));
  if (tokens > 0)
    examples_.data().copy(examples_.data().place_of(examples_.row_of(index), 1), tokens, target.data() + at);
  target.push_back(frame_.end);
  const std::span<const TokenId> all = target;
  append_rows(batch.sets[kTargetSet], all.first(all.size() - 1), all.subspan(1), sequence);
  if (layout_.images.size() > 1) append_rows_of(1, batch.sets[2]);
  append_fixed_rows(layout_, sequence, batch);
  if (features_) features_->append(examples_.row_of(index), batch);
}

FittingTexts fitting_image_texts(const ExampleSet& examples, const PairFrame& frame, int64_t most_target_rows,
                                 TooLong rule) {
  FittingTexts fitting;
  ChunkListBuilder kept(examples.data().cache_directory());
  for (int64_t i = 0; i < examples.count(); ++i) {
    const int64_t tokens = examples.data().lengths_of(examples.row_of(i)).second;
    const bool too_long = frame.target_rows(tokens) > most_target_rows;
    fitting.too_long += too_long;
    if (rule == TooLong::cut || !too_long) kept.add(examples.rows()[static_cast<size_t>(i)]);
  }
  fitting.examples = examples.subset(std::move(kept).finish());
  return fitting;
}

ImageLabelSequences::ImageLabelSequences(ExampleSet examples, std::shared_ptr<const ImageStore> store,
                                         ImageLayout layout)
    : ImageSequences(std::move(examples), std::move(store), std::move(layout)) {
  BRISK_CHECK(layout_.images.size() == 1, "{} image inputs of a classifier", layout_.images.size());
}

int64_t ImageLabelSequences::rows(int64_t /*index*/, int /*set*/) const { return layout_.images.front().rows(); }

LengthTotals ImageLabelSequences::totals(int set) const {
  if (set == 0) return totals_of_equal(count(), layout_.images.front().rows());
  if (set == static_cast<int>(kPickedSet)) return totals_of_equal(count(), 1);
  return totals_of_equal(count(), layout_.fixed_rows[static_cast<size_t>(set) - first_fixed_set(layout_)]);
}

void ImageLabelSequences::append(int64_t index, int64_t /*epoch*/, int32_t sequence, MicroBatch& batch) const {
  append_image_rows(images(index)->front(), layout_.images.front(), sequence, batch.sets[0]);
  const int32_t label = examples_.label(index);
  const std::vector<float>& weights = examples_.class_weights();
  append_picked_first(batch, label, weights.empty() || label < 0 ? 1.0f : weights[static_cast<size_t>(label)]);
  append_fixed_rows(layout_, sequence, batch);
}

}  // namespace brisk
