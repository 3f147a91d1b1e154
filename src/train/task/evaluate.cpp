#include "train/task/evaluate.h"

#include <algorithm>
#include <vector>

#include "base/ledger.h"

namespace brisk {

namespace {

// Of a micro-batch: the few that suit a CPU would leave a GPU idle.
constexpr int64_t kRowsOnCpu = 2048, kRowsOnGpu = 32768;

}  // namespace

TaskEvaluation evaluate(const Task& task, const TrainedModel& model, const std::vector<std::string>& paths,
                        int64_t max_length) {
  return evaluate(task, model, {.paths = paths, .max_length = max_length});
}

TaskEvaluation evaluate(const Task& task, const TrainedModel& model, Task::EvaluationRequest request) {
  const int64_t longest = request.max_length > 0 ? request.max_length : model.job.training.max_length;
  request.max_length = longest;
  Task::EvaluationData data = task.open_evaluation(model, request);
  std::vector<int64_t> longest_of_set = longest_of_sets(*data.sequences);
  longest_of_set[0] = std::max(longest, longest_of_set[0]);  // an image has rows of its own number
  const int64_t rows =
      std::max(data.layout.least_rows(longest_of_set), model.store.device().is_cuda() ? kRowsOnGpu : kRowsOnCpu);
  const std::unique_ptr<Evaluator> evaluator =
      task.make_evaluator({.model = *model.model,
                           .store = model.store,
                           .capacity = data.layout.capacity(rows, longest_of_set[0]),
                           .layout = data.layout,
                           .backend = backend_of(model.store.device())});
  Ledger ledger;
  TaskEvaluation evaluation{.notes = std::move(data.notes), .max_length = longest, .cut = data.cut};
  evaluation.result = evaluator->evaluate(*data.sequences, ledger);
  if (model.tokenizer)
    task.add_metrics(*model.model, model.store, *model.tokenizer, *data.sequences, evaluation.result.metrics);
  evaluation.details = data.details.json.empty() ? task.details(evaluation.result, model.labels) : data.details;
  evaluation.seconds = ledger.totals().seconds();
  return evaluation;
}

}  // namespace brisk
