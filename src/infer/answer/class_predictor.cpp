#include "infer/answer/class_predictor.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

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
                               const BatchLayout& layout, Backend backend, GemmFormat products,
                               const Program* shared_with)
    : classes_(model.classes()),
      run_(store, {layout.capacities(capacity), backend, products, shared_with}, [&](Tape& tape) {
        const Value logits = model.class_logits(tape);
        BRISK_CHECK(classes_ > 0 && logits, "a model of {} classes", classes_);
        row_set_ = static_cast<size_t>(tape.spec(logits).row_set);
        return logits;
      }) {}

int64_t ClassPredictor::run(const Sequences& sequences, Ledger& ledger, const std::function<void(const Row&)>& each,
                            int64_t count) {
  const auto classes = static_cast<size_t>(classes_);
  return run_.forward(
      sequences, ledger,
      [&](const MicroBatch& batch) {
        run_.read(host_);
        const MicroBatch::Set& picked = batch.sets[row_set_];
        for (size_t s = 0; s < picked.targets.size(); ++s) {
          each({picked.sequence[s], picked.targets[s], std::span(host_).subspan(s * classes, classes)});
        }
      },
      count);
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
