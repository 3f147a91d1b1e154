#include "infer/class_predictor.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "data/batch/packer.h"

namespace brisk {

namespace {

// log(sum(exp(logits)))
double log_sum_exp(std::span<const float> logits) {
  const double most = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - most);
  return most + std::log(sum);
}

}  // namespace

ClassPredictor::ClassPredictor(const Model& model, const ParameterStore& store, const RowCapacity& capacity,
                               const RowPicking& picking, Backend backend, ProductFormat products,
                               const Program* beside)
    : store_(store),
      classes_(model.classes()),
      tape_({.purpose = Tape::Purpose::evaluation,
             .activation_type = store.compute_type(),
             .rows = picking.row_sets(capacity)}),
      logits_(model.class_logits(tape_)),
      program_(tape_, {.backend = backend, .products = products}),
      batch_buffer_(store.device(), tape_) {
  BRISK_CHECK(classes_ > 0 && logits_, "a model of {} classes", classes_);
  if (beside != nullptr) {
    program_.allocate_with(*beside);
  } else {
    program_.allocate(store.device());
  }
}

int64_t ClassPredictor::run(const Sequences& sequences, Ledger& ledger, const std::function<void(const Row&)>& each,
                            int64_t count) {
  DeviceBatch device_batch;
  EvaluationPacker packer(sequences,
                          {.rows = tape_.rows(0).rows, .sequences = tape_.rows(0).sequences, .count = count});
  MicroBatch batch;
  int64_t rows = 0;
  while (packer.next(batch)) {
    batch_buffer_.load(batch, device_batch.sets);
    program_.forward(device_batch, ledger);
    host_.resize(static_cast<size_t>(batch.sequences() * classes_));
    store_.device().copy_out(host_.data(), program_.value(logits_, device_batch).data,
                             batch.sequences() * classes_ * size_of(DType::f32));
    for (int64_t s = 0; s < batch.sequences(); ++s) {
      const auto place = static_cast<size_t>(s);
      each({batch.picked.sequence[place], batch.picked.targets[place],
            std::span(host_).subspan(static_cast<size_t>(s * classes_), static_cast<size_t>(classes_))});
    }
    rows += batch.rows();
  }
  return rows;
}

int32_t likeliest_class(std::span<const float> logits) {
  return static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

double class_loss(std::span<const float> logits, int32_t target) {
  return log_sum_exp(logits) - static_cast<double>(logits[static_cast<size_t>(target)]);
}

std::vector<double> class_probabilities(std::span<const float> logits) {
  const double total = log_sum_exp(logits);
  std::vector<double> shares;
  shares.reserve(logits.size());
  for (const float logit : logits) shares.push_back(std::exp(static_cast<double>(logit) - total));
  return shares;
}

}  // namespace brisk
