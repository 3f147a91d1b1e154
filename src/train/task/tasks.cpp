#include <algorithm>

#include "base/error.h"
#include "job/tables.h"
#include "train/task/task.h"

namespace brisk {

#define BRISK_TASK(task, ...) std::unique_ptr<Task> make_##task##_task();
#include "job/tasks.def"
#undef BRISK_TASK

std::span<const TaskEntry> tasks() {
  static constexpr TaskEntry table[] = {
#define BRISK_TASK(task, ...) {#task, make_##task##_task},
#include "job/tasks.def"
#undef BRISK_TASK
  };
  return table;
}

std::unique_ptr<Task> make_task(std::string_view name) {
  const std::span<const TaskEntry> table = tasks();
  const auto found =
      std::find_if(table.begin(), table.end(), [&](const TaskEntry& entry) { return entry.name == name; });
  BRISK_CHECK(found != table.end(), "no task {}", name);
  return found->make();
}

std::unique_ptr<Task> make_task(const Job& job) {
  std::unique_ptr<Task> task = make_task(job.task);
  std::unique_ptr<Task> of_images = reads_images(job.model.type) ? task->for_images() : nullptr;
  return of_images ? std::move(of_images) : std::move(task);
}

}  // namespace brisk
