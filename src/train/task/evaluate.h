// A trained model's quality on other data than it was trained on, whatever its task is.
//
//   const auto model = open_trained_model("runs/reviews", "");
//   const TaskEvaluation evaluation = evaluate(*make_task(model->job), *model, {"test.csv"});
//   say("{}", metrics_text(evaluation.result.metrics, model->job.training.best_by));
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "infer/forward/evaluator.h"
#include "infer/open/trained_model.h"
#include "train/task/task.h"

namespace brisk {

struct TaskEvaluation {
  EvaluationResult result;
  Task::Description details;        // tables and a JSON object; or nothing
  std::vector<std::string> notes;   // of the data, for the user
  int64_t max_length = 0, cut = 0;  // texts that are longer than max_length, and lost their end
  double seconds = 0;
};

// `max_length`: tokens of a sequence; 0: as in training.
TaskEvaluation evaluate(const Task& task, const TrainedModel& model, const std::vector<std::string>& paths,
                        int64_t max_length = 0);
TaskEvaluation evaluate(const Task& task, const TrainedModel& model, Task::EvaluationRequest request);

}  // namespace brisk
