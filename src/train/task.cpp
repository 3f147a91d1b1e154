#include "train/task.h"

#include "base/error.h"
#include "train/language_model_task.h"

namespace brisk {

std::unique_ptr<Task> make_task(const Job& job) {
  BRISK_CHECK(job.task == "language_model", "task {}", job.task);
  return std::make_unique<LanguageModelTask>();
}

}  // namespace brisk
