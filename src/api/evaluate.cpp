#include "train/task/evaluate.h"

#include <brisk/model.h>

#include <string>
#include <utility>

#include "api/loaded_model.h"
#include "base/error.h"
#include "base/terminal/terminal.h"
#include "job/job_conditions.h"
#include "train/task/task.h"

namespace brisk {

namespace {

// Other columns than those of the training data, for one evaluation.
class ColumnScope {
 public:
  ColumnScope(Job& job, const EvaluateOptions& options, const std::string& model) : data_(job.data), before_(job.data) {
    const bool labelled = traits_of_task(job.task).has_labels;
    DataOptions chosen = job.data;
    choose(options.text_field, "text_field", model, true, chosen.text_field);
    choose(options.label_field, "label_field", model, labelled, chosen.label_field);
    choose(options.pair_field, "pair_field", model, labelled && !before_.pair_field.empty(), chosen.pair_field);
    data_ = std::move(chosen);
  }
  ~ColumnScope() { data_ = std::move(before_); }
  ColumnScope(const ColumnScope&) = delete;
  ColumnScope& operator=(const ColumnScope&) = delete;

 private:
  static void choose(const std::string& given, const char* option, const std::string& model, bool has_it,
                     std::string& column) {
    if (given.empty()) return;
    if (!has_it) {
      user_error("{} {}: {} was trained without such a column; remove the option", option_name(option), given, model);
    }
    column = given;
  }

  DataOptions& data_;
  DataOptions before_;
};

}  // namespace

Evaluation LoadedModel::evaluate(const std::vector<std::string>& data, const EvaluateOptions& options) {
  const Content::Scope scope(*content_);
  TrainedModel& model = *content_->model;
  const int64_t max_length = content_->length(options.max_length);
  const ColumnScope columns(model.job, options, model.path);
  const TaskEvaluation evaluation = brisk::evaluate(*make_task(model.job.task), model, data, max_length);
  for (const std::string& note : evaluation.notes) say("{}", note);
  return {.metrics = evaluation.result.metrics,
          .targets = evaluation.result.targets,
          .target_name = std::string(traits_of_task(model.job.task).targets),
          .tokens = evaluation.result.tokens,
          .max_length = evaluation.max_length,
          .cut = evaluation.cut,
          .seconds = evaluation.seconds,
          .details = evaluation.details.text,
          .details_json = evaluation.details.json};
}

}  // namespace brisk
