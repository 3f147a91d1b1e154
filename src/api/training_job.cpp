#include "api/training_job.h"

#include <brisk/runtime.h>
#include <fmt/ranges.h>

#include <utility>
#include <vector>

#include "base/runtime.h"
#include "base/terminal/terminal.h"
#include "infer/architecture/unread_options.h"
#include "infer/open/model_source.h"
#include "train/task/task.h"

namespace brisk {

TrainingJob::TrainingJob(std::shared_ptr<const Content> content) : content_(std::move(content)) {}

TrainingJob TrainingJob::load(Runtime& runtime, const std::string& path, const std::vector<std::string>& settings) {
  const RuntimeScope scope(runtime);
  std::vector<std::string> notes;
  Job job = load_job(path, settings, notes);
  for (const std::string& note : notes) say("{}", note);
  return TrainingJob(std::make_shared<const Content>(Content{std::move(job)}));
}

TrainingJob TrainingJob::parse(Runtime& runtime, const std::string& text, const std::vector<std::string>& settings,
                               const std::string& name) {
  const RuntimeScope scope(runtime);
  std::vector<std::string> notes;
  Job job = job_from_json_text(text, name, settings, notes);
  if (job.name.empty()) job.name = name;
  for (const std::string& note : notes) say("{}", note);
  return TrainingJob(std::make_shared<const Content>(Content{std::move(job)}));
}

const std::string& TrainingJob::task() const { return content_->job.task; }

std::string TrainingJob::output() const { return run_directory_of(content_->job); }

std::string TrainingJob::text() const { return job_to_json_text(content_->job); }

std::string TrainingJob::usage(const std::string& run) const { return make_task(content_->job)->usage(run); }

Job resolved_job(const TrainingJob& job, bool resume) {
  Job resolved = job.content().job;
  for (const std::string& line : take_model_from_source(resolved, resume)) say("{}", line);
  if (const std::vector<std::string> lines = resolve_defaults(resolved); !lines.empty()) {
    say("chosen: {}", fmt::join(lines, ", "));
  }
  check_model_options(resolved);
  return resolved;
}

}  // namespace brisk
