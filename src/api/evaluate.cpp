#include "train/task/evaluate.h"

#include <brisk/model.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "api/loaded_model.h"
#include "base/error.h"
#include "base/files/files.h"
#include "base/terminal/terminal.h"
#include "job/job_conditions.h"
#include "job/job_options.h"
#include "train/task/task.h"

namespace brisk {

namespace {

// Other columns than those of the training data, for one evaluation.
class ColumnScope {
 public:
  ColumnScope(Job& job, const EvaluateOptions& options, const std::string& model) : data_(job.data), before_(job.data) {
    Job chosen = job;
    const std::vector<Option> all = declare_job_options(chosen);
    const auto choose = [&](const std::string& given, const char* name, bool needs_one) {
      if (given.empty()) return;
      const std::string path = fmt::format("data.{}", name);
      const auto option = std::find_if(all.begin(), all.end(), [&](const Option& it) { return it.path == path; });
      if (!option->has_effect() || (needs_one && option->is_open())) {
        user_error("{} {}: {} was trained without such a column; remove the option", option_name(name), given, model);
      }
      *std::get<std::string*>(option->field) = given;
    };
    choose(options.text_field, "text_field", false);
    choose(options.image_field, "image_field", false);
    choose(options.label_field, "label_field", false);
    choose(options.pair_field, "pair_field", true);
    choose(options.source_field, "source_field", false);
    choose(options.target_field, "target_field", false);
    data_ = std::move(chosen.data);
  }
  ~ColumnScope() { data_ = std::move(before_); }
  ColumnScope(const ColumnScope&) = delete;
  ColumnScope& operator=(const ColumnScope&) = delete;

 private:
  DataOptions& data_;
  DataOptions before_;
};

// Where the run kept its tokens, unless that is another user's, or on another machine: then where this one keeps them.
void use_own_cache(Runtime& runtime, DataOptions& data) {
  if (data.cache_dir.empty()) return;
  const RuntimeScope scope(runtime);
  try {
    make_directories(data.cache_dir);
    if (::access(data.cache_dir.c_str(), W_OK | X_OK) == 0) return;
  } catch (const UserError&) {  // it cannot be made
  }
  const std::string recorded = std::exchange(data.cache_dir, "");
  say("tokens are kept in {}: the run's own data.cache_dir, {}, cannot be written to", cache_directory(data), recorded);
}

}  // namespace

Evaluation LoadedModel::evaluate(const std::vector<std::string>& data, const EvaluateOptions& options) {
  TrainedModel& model = *content_->model;
  use_own_cache(content_->runtime, model.job.data);
  const Content::Scope scope(*content_);
  const int64_t max_length = content_->length(options.max_length);
  const ColumnScope columns(model.job, options, model.path);
  if (!options.target.empty() && !traits_of_task(model.job.task).trains_encoder_decoder) {
    user_error("{} {}: {} (task {}) does not translate; remove the option", option_name("target"),
               options.target.front(), model.path, model.job.task);
  }
  const TaskEvaluation evaluation = brisk::evaluate(*make_task(model.job), model,
                                                    Task::EvaluationRequest{.paths = data,
                                                                            .max_length = max_length,
                                                                            .target = options.target,
                                                                            .translate = options.translate,
                                                                            .translation = options.translation,
                                                                            .bleu_tokenizer = options.bleu_tokenizer});
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
