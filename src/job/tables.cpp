#include "job/tables.h"

#include <algorithm>

#include "base/error.h"
#include "job/job.h"

namespace brisk {

#define BRISK_ARCHITECTURE(name, ...) void declare_##name##_options(Job& job, std::vector<Option>& all);
#include "job/architectures.def"
#undef BRISK_ARCHITECTURE

const std::vector<ArchitectureTraits>& all_architectures() {
  static const std::vector<ArchitectureTraits> table = {
#define BRISK_ARCHITECTURE(name, ...) ArchitectureTraits{__VA_ARGS__},
#include "job/architectures.def"
#undef BRISK_ARCHITECTURE
  };
  return table;
}

const std::vector<TaskTraits>& all_tasks() {
  static const std::vector<TaskTraits> table = {
#define BRISK_TASK(task, ...) TaskTraits{.name = #task, __VA_ARGS__},
#include "job/tasks.def"
#undef BRISK_TASK
  };
  return table;
}

int architecture_with(const std::string& type) {
  const auto has_type = [&](const ArchitectureTraits& architecture) {
    return std::find(architecture.types.begin(), architecture.types.end(), type) != architecture.types.end();
  };
  const std::vector<ArchitectureTraits>& all = all_architectures();
  const auto found = std::find_if(all.begin(), all.end(), has_type);
  return found == all.end() ? -1 : static_cast<int>(found - all.begin());
}

bool has_fixed_layers(const std::string& type) {
  const int architecture = architecture_with(type);
  return architecture >= 0 && all_architectures()[static_cast<size_t>(architecture)].fixed_layers;
}

bool reads_images(const std::string& type) {
  const int architecture = architecture_with(type);
  return architecture >= 0 && all_architectures()[static_cast<size_t>(architecture)].reads_images;
}

bool ModelOptions::is_encoder() const {
  const int architecture = architecture_with(type);  // none: a spelling such as "llama"
  return architecture >= 0 && all_architectures()[static_cast<size_t>(architecture)].is_encoder;
}

bool ModelOptions::is_encoder_decoder() const {
  const int architecture = architecture_with(type);
  return architecture >= 0 && all_architectures()[static_cast<size_t>(architecture)].is_encoder_decoder;
}

const TaskTraits* find_task_traits(const std::string& task) {
  const auto found =
      std::find_if(all_tasks().begin(), all_tasks().end(), [&](const TaskTraits& row) { return row.name == task; });
  return found != all_tasks().end() ? &*found : nullptr;
}

const TaskTraits& traits_of_task(const std::string& task) {
  const TaskTraits* found = find_task_traits(task);
  BRISK_CHECK(found != nullptr, "no task {}", task);
  return *found;
}

bool has_texts(const TaskTraits& task, const std::string& type) { return !task.has_labels || !reads_images(type); }

bool trains_type(const TaskTraits& task, const std::string& type) {
  const ModelOptions model{.type = type};
  return task.trains_encoder == model.is_encoder() && task.trains_encoder_decoder == model.is_encoder_decoder() &&
         (reads_images(type) ? task.reads_images : task.reads_texts);
}

std::vector<std::string> types_for_task(const std::string& task) {
  std::vector<std::string> types;
  for (const ArchitectureTraits& architecture : all_architectures()) {
    if (trains_type(traits_of_task(task), architecture.types.front()))
      types.insert(types.end(), architecture.types.begin(), architecture.types.end());
  }
  return types;
}

std::vector<std::string> tasks_for_type(const std::string& type) {
  std::vector<std::string> tasks;
  for (const TaskTraits& task : all_tasks()) {
    if (trains_type(task, type)) tasks.push_back(task.name);
  }
  return tasks;
}

std::string alternatives(const std::vector<std::string>& words) {
  std::string text;
  for (size_t i = 0; i < words.size(); ++i) text += (i == 0 ? "" : i + 1 < words.size() ? ", " : " or ") + words[i];
  return text;
}

}  // namespace brisk
