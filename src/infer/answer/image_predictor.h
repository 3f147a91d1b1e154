// What a trained classifier says of images: one answer each, in their order.
//
//   ImagePredictor predictor(*model, layout);
//   predictor.predict(store, numbers, [&](int32_t label, const std::vector<double>& shares) { ... });
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "data/images/image_store.h"
#include "image/image_input.h"
#include "infer/answer/class_predictor.h"
#include "infer/answer/predict.h"
#include "infer/open/trained_model.h"

namespace brisk {

class ImagePredictor {
 public:
  // The model must outlive it. UserError where it is no classifier.
  ImagePredictor(const TrainedModel& model, ImageLayout layout);

  // Of images of the store, which has this layout's inputs.
  void predict(const ImageStore& store, std::span<const int64_t> images, const Predictor::Answer& answer);
  int64_t rows() const { return rows_; }  // computed so far

 private:
  ImageLayout layout_;
  std::unique_ptr<ClassPredictor> predictor_;
  Ledger ledger_;
  int64_t rows_ = 0;
};

}  // namespace brisk
