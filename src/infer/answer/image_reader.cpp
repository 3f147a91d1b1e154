#include "infer/answer/image_reader.h"

#include <utility>
#include <vector>

#include "base/error.h"
#include "data/images/image_list.h"
#include "infer/answer/translate.h"
#include "infer/forward/image_batch_layout.h"

namespace brisk {

ImageReader::ImageReader(const ConditionalModel& model, const ParameterStore& store, ImageLayout layout,
                         const Tokenizer& tokenizer, PairFrame frame)
    : layout_(std::move(layout)),
      tokenizer_(tokenizer),
      most_tokens_(model.max_target_length()),
      generator_(model, store, std::move(frame), tokenizer.vocab_size()) {}

void ImageReader::read(const ImageStore& store, std::span<const int64_t> images, const TranslateOptions& options,
                       const OnAnswer& on_answer, const ImageFeatures* features) {
  std::vector<ConditionalGenerator::Request> requests;
  for (size_t i = 0; i < images.size(); ++i) {
    requests.push_back(
        {.number = images_seen_ + i, .most_tokens = options.max_tokens > 0 ? options.max_tokens : most_tokens_});
  }
  images_seen_ += images.size();
  if (features == nullptr) store.prefetch(images);
  std::vector<Translated> answers(images.size());
  generator_.generate(ImageList(store, images, layout_, ImageList::Asks::text, features),
                      image_text_layout(layout_, {}), requests, options,
                      [&](int64_t index, std::span<const BeamSearch::Found> found) {
                        answers[static_cast<size_t>(index)].best = texts_of(found, tokenizer_, options.n_best);
                      });
  for (size_t i = 0; i < answers.size(); ++i) on_answer(i, std::move(answers[i]));
}

}  // namespace brisk
