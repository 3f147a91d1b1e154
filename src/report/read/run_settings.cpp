#include "report/read/run_settings.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "job/job.h"
#include "job/job_options.h"

namespace brisk {

namespace {

using Json = nlohmann::ordered_json;

std::string text_of(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

// The value that option `i` has where the job does not give it; empty where there is no such job.
std::string value_without(Job job, size_t i) {
  Job plain;
  const std::vector<Option> options = declare_job_options(job), defaults = declare_job_options(plain);
  std::set<std::string> given;
  for (const Option& option : options) given.insert(option.path);
  given.erase(options[i].path);
  options[i].take(defaults[i]);
  try {
    apply_other_defaults(options, given);
    resolve_defaults(job);
    return options[i].value_text();
  } catch (const UserError&) {
    return "";  // other settings make no sense without this one: it was given
  }
}

std::vector<Setting> raw_settings(const Json& json) {
  std::vector<Setting> settings;
  for (const auto& [key, value] : json.items()) {
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
  const Json json = Json::parse(job_text, nullptr, false, true);
  if (!json.is_object()) {
    notes.push_back(fmt::format("{}: it is no JSON object; the settings are not known", job_path));
    return {};
  }
  try {
    Job job = job_from_json_text(job_text, job_path);
    resolve_defaults(job);
    std::vector<Setting> settings;
    const std::vector<Option> options = declare_job_options(job);
    for (size_t i = 0; i < options.size(); ++i) {
      if (!options[i].has_effect()) continue;
      const std::string value = options[i].value_text();
      settings.push_back({options[i].path, value, options[i].help, value == value_without(job, i)});
    }
    return settings;
  } catch (const UserError& error) {
    notes.push_back(fmt::format("{}; the settings are shown as they stand", error.what()));
    return raw_settings(json);
  }
}

}  // namespace brisk
