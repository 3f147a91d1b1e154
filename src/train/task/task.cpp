#include "train/task/task.h"

#include <fmt/format.h>

#include "infer/architecture/architecture.h"

namespace brisk {

Job resolved(Job job, const DataDecisions& decided) {
  const auto set = [](auto& value, const auto& decision) {
    if (decision) value = *decision;
  };
  set(job.model.vocab_size, decided.vocab_size);
  set(job.model.num_labels, decided.num_labels);
  set(job.data.text_field, decided.text_field);
  set(job.data.label_field, decided.label_field);
  set(job.data.pair_field, decided.pair_field);
  return job;
}

ModelConfig Task::model_config(const Job& job) const { return training_config(job); }

std::string Task::describe_model(const Job& job) const { return architecture_of(job.model).describe(job); }

std::string Task::usage(const std::string& run) const { return fmt::format("brisk eval {} --data PATH", run); }

}  // namespace brisk
