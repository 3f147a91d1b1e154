#include "report/read/run_settings.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "job/job.h"
#include "job/job_options.h"

namespace brisk {

namespace {

using Json = nlohmann::ordered_json;

std::string text_of(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

// The value that a job without the option has; empty where there is no such job.
std::string value_without(const std::string& job_text, const Option& option, const std::string& source) {
  try {
    std::vector<std::string> notes;
    Job job = job_from_json_text(job_text, source, {option.path + "=null"}, notes);
    resolve_defaults(job);
    for (const Option& other : declare_job_options(job)) {
      if (other.path == option.path) return other.value_text();
    }
  } catch (const UserError&) {
    // Other settings make no sense without this one: it was given.
  }
  return "";
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
    const std::string resolved = job_to_json_text(job);
    std::vector<Setting> settings;
    for (const Option& option : declare_job_options(job)) {
      if (!option.has_effect()) continue;
      const std::string value = option.value_text();
      settings.push_back({option.path, value, option.help, value == value_without(resolved, option, job_path)});
    }
    return settings;
  } catch (const UserError& error) {
    notes.push_back(fmt::format("{}; the settings are shown as they stand", error.what()));
    return raw_settings(json);
  }
}

}  // namespace brisk
