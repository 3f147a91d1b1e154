#include "models/image_classifier.h"

#include "base/error.h"

namespace brisk {

namespace {

constexpr int kEach = 1;  // row set: one row for each image

}  // namespace

std::unique_ptr<Model> ImageClassifierConfig::make(ParameterStore& store) const {
  return std::make_unique<ImageClassifier>(*this, store);
}

uint64_t ImageClassifierConfig::fingerprint() const {
  const auto& [reads, mean, C] = *this;
  return fingerprint_of("image_classifier", reads.fingerprint(), mean, C);
}

ImageClassifier::ImageClassifier(const ImageClassifierConfig& config, ParameterStore& store)
    : config_(config), encoder_(config.encoder, store, "") {
  BRISK_CHECK(config.mean_pooling || config.encoder.image.class_row, "no class row to read");
  const int64_t width = config.encoder.width();
  if (config.has_pooled_norm()) {
    norm_gain_ =
        store.add({.name = "pooled_norm.gain", .cols = width, .initial = {Initial::Kind::ones}, .component = "norms"});
    norm_bias_ = store.add({.name = "pooled_norm.bias", .cols = width, .component = "norms"});
  }
  if (config.num_labels == 0) return;
  weight_ = store.add({.name = "classifier.weight",
                       .rows = config.num_labels,
                       .cols = width,
                       .decays = true,
                       .multiplies = true,
                       .initial = {Initial::Kind::normal, 0.02},
                       .component = "head"});
  bias_ = store.add({.name = "classifier.bias", .cols = config.num_labels, .component = "head"});
}

Value ImageClassifier::pooled(Tape& tape) const {
  BRISK_CHECK(config_.num_labels > 0, "an encoder without a head has neither loss nor logits");
  const ImageEncoder::Output encoded = encoder_.record(tape, kPixelSet, kFirstFixedSet);
  if (!config_.mean_pooling) return pick_rows(tape, encoded.rows, kEach);
  const Value mean = mean_rows(tape, encoded.rows, kEach, config_.encoder.image.class_row ? 1 : 0);
  if (norm_gain_ == nullptr) return mean;
  return norm(tape, mean, NormKind::layer, norm_gain_, norm_bias_, config_.encoder.norm_epsilon);
}

LossValues ImageClassifier::loss(Tape& tape, const LossOptions& options) const {
  return linear_cross_entropy(tape, pooled(tape), weight_,
                              {.label_smoothing = options.label_smoothing,
                               .bias = bias_,
                               .soft_weight = options.soft_weight,
                               .temperature = options.temperature});
}

Value ImageClassifier::class_logits(Tape& tape) const { return logits(tape, pooled(tape), weight_, bias_); }

}  // namespace brisk
