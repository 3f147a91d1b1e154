#include "train/run/plan/resume_check.h"

#include <map>

#include "base/error.h"
#include "job/job_options.h"

namespace brisk {

void check_same_job(const std::string& saved_text, const std::string& saved_path, const Job& job) {
  Job saved_job = job_from_json_text(saved_text, saved_path);
  resolve_defaults(saved_job);  // of keys that an earlier brisk did not have
  Job copy = job;
  const std::map<std::string, std::string> saved = values_fixed_on_resume(declare_job_options(saved_job));
  const std::map<std::string, std::string> now = values_fixed_on_resume(declare_job_options(copy));
  const auto value_of = [](const std::map<std::string, std::string>& values, const std::string& path) {
    const auto found = values.find(path);
    return found == values.end() ? "nothing" : found->second;
  };
  std::map<std::string, std::string> all = saved;
  all.insert(now.begin(), now.end());
  for (const auto& [path, unused] : all) {
    const std::string before = value_of(saved, path), after = value_of(now, path);
    if (before == after) continue;
    user_error(
        "{}: the run was started with {} = {}, the job now says {}; resuming would change the loss curve: set it back, "
        "or start a new run with another --output",
        saved_path, path, before, after);
  }
}

}  // namespace brisk
