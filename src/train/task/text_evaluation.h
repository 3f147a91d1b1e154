// How good the texts are that a model writes at an evaluation, beside their references: in as many parts as a step has, divided
// over the processes that train together, with the same result on any number of them.
//
//   TextEvaluation evaluation(job, request.processes);
//   evaluation.add_scores(count, {.kinds = {TextScoreKind::kBleu}}, [&](int64_t begin, int64_t end, const auto& on_answer) {
//     for (int64_t i = begin; i < end; ++i) on_answer(text_by_the_model(i), reference(i));
//   }, metrics);
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "base/metrics.h"
#include "job/job.h"
#include "score/text_scores.h"
#include "train/engine/process_group.h"

namespace brisk {

class TextEvaluation {
 public:
  TextEvaluation() = default;  // in one part, by this process alone
  TextEvaluation(const Job& job, ProcessGroup* processes);

  using OnAnswer = std::function<void(std::string_view answer, std::string_view reference)>;
  // Hands over the answers to the texts from `begin` to `end`. May throw Cancelled.
  using Write = std::function<void(int64_t begin, int64_t end, const OnAnswer& on_answer)>;
  void add_scores(int64_t count, const TextScoreOptions& options, const Write& write, Metrics& metrics) const;

 private:
  ProcessGroup* processes_ = nullptr;  // that train together; or none
  int64_t parts_ = 1;
};

Metric text_score_metric(TextScoreKind kind, double value = Metric::kNone);

// UserError where training.best_by is one of these scores, and no text is written to measure it.
void check_best_by(const Job& job, std::span<const TextScoreKind> kinds);

}  // namespace brisk
