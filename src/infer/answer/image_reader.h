// The texts of images by a trained model: captions, lines that are recognised, pages that are translated.
//
//   const ImageLayout layout = architecture_of(model->job.model).image_layout(model->job.model);
//   ImageReader reader(*model->model->conditional(), model->store, layout, tokenizer, frame);
//   const ImageStore store(paths, layout.images, {.threads = 2});
//   reader.read(store, numbers, {.beam = 4}, [&](size_t index, Translated answer) { ... });   // in the order of `numbers`
#pragma once

#include <brisk/model.h>

#include <cstdint>
#include <functional>
#include <span>

#include "data/examples/pair_sequences.h"
#include "data/images/image_features.h"
#include "data/images/image_store.h"
#include "image/image_input.h"
#include "infer/answer/conditional_generator.h"
#include "models/model.h"
#include "tensor/parameter.h"
#include "text/tokenizer.h"

namespace brisk {

class ImageReader {
 public:
  // Model, store and tokenizer must outlive it. `frame`: what a text begins and ends with.
  ImageReader(const ConditionalModel& model, const ParameterStore& store, ImageLayout layout,
              const Tokenizer& tokenizer, PairFrame frame);

  using OnAnswer = std::function<void(size_t index, Translated answer)>;
  // Of images of the store, which has this layout's inputs. `features`: of the images, for a model whose encoders are cached.
  // Answers come when all are done. Throws Cancelled.
  void read(const ImageStore& store, std::span<const int64_t> images, const TranslateOptions& options,
            const OnAnswer& on_answer, const ImageFeatures* features = nullptr);
  int64_t tokens() const { return generator_.tokens(); }  // of all texts so far

  const ImageLayout& layout() const { return layout_; }

 private:
  ImageLayout layout_;
  const Tokenizer& tokenizer_;
  int64_t most_tokens_;
  ConditionalGenerator generator_;
  uint64_t images_seen_ = 0;  // so that what is drawn at random does not depend on how images are handed over
};

}  // namespace brisk
