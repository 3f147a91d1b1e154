#include "train/task/task.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "infer/architecture/architecture.h"
#include "train/task/classify_task.h"
#include "train/task/language_model_task.h"
#include "train/task/mlm_task.h"
#include "train/task/smoke_subset.h"

namespace brisk {

namespace {

template <typename T>
std::unique_ptr<Task> make_one() {
  return std::make_unique<T>();
}

constexpr TaskEntry kTasks[] = {
    {"language_model", make_one<LanguageModelTask>},
    {"classify", make_one<ClassifyTask>},
    {"mlm", make_one<MlmTask>},
};

}  // namespace

std::span<const TaskEntry> tasks() { return kTasks; }

std::unique_ptr<Task> make_task(std::string_view name) {
  const auto* found =
      std::find_if(std::begin(kTasks), std::end(kTasks), [&](const auto& it) { return it.name == name; });
  BRISK_CHECK(found != std::end(kTasks), "no task {}", name);
  return found->make();
}

ModelConfig Task::model_config(const Job& job) const { return training_config(job); }

std::string Task::describe_model(const Job& job) const { return architecture_of(job.model).describe(job); }

std::unique_ptr<Generator> Task::open_generator(const TrainedModel& model) const {
  return std::make_unique<Generator>(model.causal(), model.store, *model.tokenizer);
}

std::unique_ptr<Predictor> Task::open_predictor(const TrainedModel& model, bool pairs, int64_t max_length) const {
  return std::make_unique<Predictor>(model, pairs, max_length);
}

SmokeSubset Task::take_subset(const Job& job, const std::string& folder, const SubsetSize& size, Job& small) const {
  return take_text_subset(job, folder, size, small);
}

std::string Task::usage(const std::string& run) const { return fmt::format("brisk eval {} --data PATH", run); }

}  // namespace brisk
