#include "train/task/task.h"

#include <fmt/format.h>

#include "base/error.h"
#include "infer/architecture/architecture.h"
#include "job/tables.h"
#include "train/task/smoke_subset.h"

namespace brisk {

ModelConfig Task::model_config(const Job& job) const { return training_config(job); }

std::string Task::describe_model(const Job& job) const { return architecture_of(job.model).describe(job); }

std::unique_ptr<Generator> Task::open_generator(const TrainedModel& model) const {
  return std::make_unique<Generator>(model.causal(), model.store, *model.tokenizer);
}

std::unique_ptr<Translator> Task::open_translator(const TrainedModel& model) const {
  if (reads_images(model.job.model.type)) {
    user_error("{}: it reads images, and no texts; `brisk predict {} --images FOLDER` writes what it reads", model.path,
               model.path);
  }
  if (reads_images(model.job.model.type)) {
    user_error("{}: a {}, which reads images; `brisk predict {} --images FOLDER` has their texts", model.source,
               model.job.model.type, model.path);
  }
  const ConditionalModel& translates = model.conditional();
  return std::make_unique<Translator>(translates, model.store, text_of(model));
}

std::unique_ptr<Predictor> Task::open_predictor(const TrainedModel& model, bool pairs, int64_t max_length) const {
  return std::make_unique<Predictor>(model, pairs, max_length);
}

SmokeSubset Task::take_subset(const Job& job, const std::string& folder, const SubsetSize& size, Job& small) const {
  return take_text_subset(job, folder, size, small);
}

std::string Task::usage(const std::string& run) const { return fmt::format("brisk eval {} --data PATH", run); }

}  // namespace brisk
