#include "report/read/run_settings.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/parse_json.h"
#include "job/job.h"
#include "job/job_options.h"

namespace brisk {

namespace {

using Json = nlohmann::ordered_json;

std::string text_of(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

// The same job, each time without one of its settings.
class JobWithout {
 public:
  explicit JobWithout(const Job& job) : whole_(job), defaults_(declare_job_options(plain_)) {
    for (const Option& option : options_) given_.insert(option.path);
  }

  // The value that option `i` has where the job does not give it; empty where there is no such job.
  std::string value(size_t i) {
    const Option& option = options_[i];
    job_ = whole_;  // the options go on speaking of it
    option.take(defaults_[i]);
    given_.erase(option.path);
    std::string value;
    try {
      apply_other_defaults(options_, given_);
      resolve_defaults(job_);
      value = option.value_text();
    } catch (const UserError&) {
      // other settings make no sense without this one: it was given
    }
    given_.insert(option.path);
    return value;
  }

 private:
  const Job& whole_;
  Job plain_, job_;
  const std::vector<Option> options_ = declare_job_options(job_), defaults_;
  std::set<std::string> given_;
};

std::vector<Setting> raw_settings(const Json& json, const std::string& job_path, std::vector<std::string>& notes) {
  constexpr size_t kMost = 1000;  // ten times what a job can have
  std::vector<Setting> settings;
  for (const auto& [key, value] : json.items()) {
    if (settings.size() >= kMost) {
      notes.push_back(fmt::format("{}: more than {} settings; the others are not shown", job_path, kMost));
      break;
    }
    if (!value.is_object()) {
      settings.push_back({key, text_of(value), "", false});
      continue;
    }
    for (const auto& [name, item] : value.items()) settings.push_back({key + "." + name, text_of(item), "", false});
  }
  return settings;
}

}  // namespace

std::vector<Setting> read_settings(const std::string& job_text, const std::string& job_path,
                                   std::vector<std::string>& notes) {
  Json json;
  try {
    std::vector<std::string> keys_found_twice;  // job_from_json_text() names them
    json = parse_job_json(job_text, job_path, keys_found_twice);
  } catch (const UserError& error) {
    notes.push_back(fmt::format("{}; the settings are not known", error.what()));
    return {};
  }
  if (!json.is_object()) {
    notes.push_back(fmt::format("{}: not a JSON object; the settings are not known", job_path));
    return {};
  }
  try {
    Job job = job_from_json_text(job_text, job_path);
    resolve_defaults(job);
    std::vector<Setting> settings;
    const std::vector<Option> options = declare_job_options(job);
    JobWithout without(job);
    for (size_t i = 0; i < options.size(); ++i) {
      if (!options[i].has_effect()) continue;
      const std::string value = options[i].value_text();
      settings.push_back({options[i].path, value, options[i].help, value == without.value(i)});
    }
    return settings;
  } catch (const UserError& error) {
    notes.push_back(fmt::format("{}; the settings are shown as they stand", error.what()));
    return raw_settings(json, job_path, notes);
  }
}

}  // namespace brisk
