#include "train/task/task.h"

#include "base/error.h"
#include "infer/architecture/architecture.h"
#include "train/task/classify_task.h"
#include "train/task/language_model_task.h"
#include "train/task/mlm_task.h"

namespace brisk {

ModelConfig Task::model_config(const Job& job) const { return training_config(job); }

std::string Task::describe_model(const Job& job) const { return architecture_of(job.model).describe(job); }

std::unique_ptr<Task> make_task(const Job& job) {
  if (job.task == "classify") return std::make_unique<ClassifyTask>();
  if (job.task == "mlm") return std::make_unique<MlmTask>();
  BRISK_CHECK(job.task == "language_model", "task {}", job.task);
  return std::make_unique<LanguageModelTask>();
}

}  // namespace brisk
