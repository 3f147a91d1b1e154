#include "infer/architecture/unread_options.h"

#include <vector>

#include "base/error.h"
#include "infer/architecture/architecture.h"
#include "job/job_options.h"

namespace brisk {

namespace {

// The options of a job of this task and model.type that says nothing else.
Job plainest_job(const Job& job) {
  Job plain;
  plain.task = job.task;
  plain.model.type = job.model.type;
  apply_other_defaults(declare_job_options(plain), {"task", "model.type"});
  return plain;
}

// Whether the architecture makes another model of `job` than where option `i` has its default.
bool is_read(const Job& job, const ModelConfig& config, Job plain, size_t i) {
  Job changed = job;
  const std::vector<Option> options = declare_job_options(changed);
  const std::string asked = options[i].value_text();
  options[i].take(declare_job_options(plain)[i]);
  try {
    resolve_defaults(changed);
    return options[i].value_text() == asked || !is_same_config(training_config(changed), config);
  } catch (const UserError&) {
    return true;  // somebody looked at it: its default does not fit to the others
  }
}

}  // namespace

void check_model_options(const Job& job) {
  if (!job.model.from.empty()) return;
  const ModelConfig config = training_config(job);
  const Job plain = plainest_job(job);
  Job copy = job;
  const std::vector<Option> options = declare_job_options(copy);
  for (size_t i = 0; i < options.size(); ++i) {
    const Option& option = options[i];
    if (option.section() != "model" || option.path == "model.type" || option.source_rule == WithSource::leaves ||
        !job.given.contains(option.path) || !option.has_effect() || is_read(job, config, plain, i)) {
      continue;
    }
    user_error("{} = {} does not apply to model.type {}, which does not read it; remove it", option.path,
               option.value_text(), job.model.type);
  }
}

}  // namespace brisk
