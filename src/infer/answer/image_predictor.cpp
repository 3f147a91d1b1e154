#include "infer/answer/image_predictor.h"

#include <algorithm>
#include <utility>

#include "data/images/image_list.h"
#include "infer/forward/image_batch_layout.h"

namespace brisk {

ImagePredictor::ImagePredictor(const TrainedModel& model, ImageLayout layout) : layout_(std::move(layout)) {
  require_classifier(model);
  const BatchLayout batches = image_label_layout(layout_);
  const int64_t rows = layout_.images.front().rows();
  const int64_t usual = std::max(rows, usual_micro_batch_tokens(&model.store.device()) / 2);
  predictor_ = std::make_unique<ClassPredictor>(*model.model, model.store, batches.capacity(usual, rows), batches,
                                                backend_of(model.store.device()));
}

void ImagePredictor::predict(const ImageStore& store, std::span<const int64_t> images,
                             const Predictor::Answer& answer) {
  store.prefetch(images);
  rows_ += predictor_->run(
      ImageList(store, images, layout_, ImageList::Asks::label), ledger_,
      [&](const ClassPredictor::Row& row) { answer(likeliest_class(row.logits), class_probabilities(row.logits)); });
}

}  // namespace brisk
