// A classifier of images: an image encoder (models/image_encoder.h), one row for each image, and a linear layer.
//
//   Tape tape({.rows = {{8 * 197, 8, 197}, {8, 8, 1}}});   // row set 0: patches; row set 1: a row for each image
//   LossValues loss = classifier.loss(tape, {});
//
// The row is that of the class token, or the mean of the patches' rows, which is then normalized unless these were (BEiT).
// Row set 1 says whose class row it is (DeviceBatch::Set::source); Swin's coarser grids are row sets 2 and on.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "models/image_encoder.h"
#include "models/model.h"
#include "models/model_config.h"

namespace brisk {

struct ImageClassifierConfig {
  ImageEncoderConfig encoder;
  bool mean_pooling = false;
  int64_t num_labels = 2;  // C; 0: an encoder alone, to be trained from

  bool has_pooled_norm() const { return mean_pooling && !encoder.final_norm; }
  std::unique_ptr<Model> make(ParameterStore& store) const;
  ModelWidths widths() const { return {encoder.width(), encoder.widest_d_ff()}; }
  uint64_t fingerprint() const;
  bool operator==(const ImageClassifierConfig&) const = default;
};

class ImageClassifier final : public Model {
 public:
  ImageClassifier(const ImageClassifierConfig& config, ParameterStore& store);

  const ImageClassifierConfig& config() const { return config_; }
  LossValues loss(Tape& tape, const LossOptions& options) const override;
  int64_t classes() const override { return config_.num_labels; }
  Value class_logits(Tape& tape) const override;

 private:
  Value pooled(Tape& tape) const;  // [rows of set 1, width]

  ImageClassifierConfig config_;
  ImageEncoder encoder_;
  Parameter *norm_gain_ = nullptr, *norm_bias_ = nullptr;
  Parameter *weight_ = nullptr, *bias_ = nullptr;
};

}  // namespace brisk
