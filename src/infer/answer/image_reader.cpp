#include "infer/answer/image_reader.h"

#include <utility>
#include <vector>

#include "base/error.h"
#include "data/images/image_sequences.h"
#include "infer/answer/translate.h"
#include "infer/forward/image_batch_layout.h"

namespace brisk {

namespace {

// Images whose texts are to be written: as ImageTextSequences, without a row of those.
class ImagesAlone final : public Sequences {
 public:
  ImagesAlone(const ImageStore& store, std::span<const int64_t> images, const ImageLayout& layout)
      : store_(store), images_(images), layout_(layout) {}

  int64_t count() const override { return std::ssize(images_); }
  int sets() const override { return static_cast<int>(layout_.images.size()) + 1; }
  int64_t rows(int64_t /*index*/, int set) const override {
    return set == kTargetSet ? 0 : layout_.images[set == 0 ? 0 : 1].rows();
  }
  LengthTotals totals(int set) const override {
    LengthTotals totals;
    for (int64_t i = 0; i < count(); ++i) totals.add(rows(i, set));
    return totals;
  }
  void append(int64_t index, int64_t /*epoch*/, int32_t sequence, MicroBatch& batch) const override {
    const ImageStore::Images images = store_.get(images_[static_cast<size_t>(index)]);
    append_image_rows(images->front(), layout_.images.front(), sequence, batch.sets[0]);
    batch.sets[kTargetSet].end_sequence(0);
    if (layout_.images.size() > 1) append_image_rows(images->back(), layout_.images.back(), sequence, batch.sets[2]);
    append_fixed_rows(layout_, sequence, batch);
  }
  bool has_prefetch() const override { return true; }
  void prefetch(std::span<const int64_t> indices) const override {
    std::vector<int64_t> numbers;
    for (const int64_t index : indices) numbers.push_back(images_[static_cast<size_t>(index)]);
    store_.prefetch(numbers);
  }

 private:
  const ImageStore& store_;
  std::span<const int64_t> images_;
  const ImageLayout& layout_;
};

}  // namespace

ImageReader::ImageReader(const ConditionalModel& model, const ParameterStore& store, ImageLayout layout,
                         const Tokenizer& tokenizer, PairFrame frame)
    : layout_(std::move(layout)),
      tokenizer_(tokenizer),
      most_tokens_(model.max_target_length()),
      generator_(model, store, std::move(frame), tokenizer.vocab_size()) {}

void ImageReader::read(const ImageStore& store, std::span<const int64_t> images, const TranslateOptions& options,
                       const OnAnswer& on_answer) {
  std::vector<ConditionalGenerator::Request> requests;
  for (size_t i = 0; i < images.size(); ++i) {
    requests.push_back(
        {.number = images_seen_ + i, .most_tokens = options.max_tokens > 0 ? options.max_tokens : most_tokens_});
  }
  images_seen_ += images.size();
  store.prefetch(images);
  std::vector<Translated> answers(images.size());
  generator_.generate(ImagesAlone(store, images, layout_), image_text_layout(layout_, {}), requests, options,
                      [&](int64_t index, std::span<const BeamSearch::Found> found) {
                        answers[static_cast<size_t>(index)].best = texts_of(found, tokenizer_, options.n_best);
                      });
  for (size_t i = 0; i < answers.size(); ++i) on_answer(i, std::move(answers[i]));
}

}  // namespace brisk
