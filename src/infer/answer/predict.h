// What a trained classifier says of texts: one answer each, in their order, packed.
//
//   const auto model = open_trained_model("runs/reviews", "");
//   Predictor predictor(*model);
//   predictor.predict({{"a fine film"}, {"a waste of time"}}, [&](int32_t label, const std::vector<double>& shares) {
//     say("{} {:.3f}", model->labels.name(label), shares[label]);
//   });
#pragma once

#include <brisk/model.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/ledger.h"
#include "data/examples/text_frame.h"
#include "infer/answer/class_predictor.h"
#include "infer/open/trained_model.h"

namespace brisk {

class Predictor {
 public:
  // The model must outlive it. `max_length`: tokens of a text, the rest is cut off; 0: as in training. UserError where
  // the model is no classifier.
  explicit Predictor(const TrainedModel& model, bool pairs = false, int64_t max_length = 0);

  using Answer = std::function<void(int32_t label, const std::vector<double>& probabilities)>;
  void predict(const std::vector<TextOrPair>& texts, const Answer& answer);

  int64_t tokens() const { return tokens_; }  // rows computed so far
  int64_t cut() const { return cut_; }        // texts longer than max_length() so far
  int64_t max_length() const { return max_length_; }

 private:
  const TrainedModel& model_;
  TextFrame frame_;
  int64_t max_length_;
  std::unique_ptr<ClassPredictor> predictor_;
  Ledger ledger_;
  int64_t tokens_ = 0, cut_ = 0;
};

// UserError where the model is no classifier.
void require_classifier(const TrainedModel& model);

}  // namespace brisk
