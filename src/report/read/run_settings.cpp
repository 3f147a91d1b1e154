#include "report/read/run_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/error.h"
#include "job/job.h"
#include "job/job_options.h"

namespace brisk {

namespace {

using Json = nlohmann::ordered_json;

std::string text_of(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

// The value that a job without the option has; empty where there is no such job.
std::string value_without(Json job_json, const Option& option, const std::string& source) {
  Json& section = option.section().empty() ? job_json : job_json[option.section()];
  section.erase(option.name());
  try {
    Job job = job_from_json_text(job_json.dump(), source);
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

// Whether the option decides anything in such a job.
bool has_a_part(const std::string& path, const Job& job) {
  const bool encoder = job.model.is_encoder(), classify = job.task == "classify", mlm = job.task == "mlm";
  const bool adapters = job.training.lora_rank > 0;
  const auto is_one_of = [&](std::initializer_list<std::string_view> paths) {
    return std::find(paths.begin(), paths.end(), path) != paths.end();
  };
  if (is_one_of({"training.muon_learning_rate", "training.muon_momentum"}))
    return job.training.optimizer == "muon" && !adapters;
  if (path == "training.decay_ratio") return job.training.lr_scheduler == "wsd";
  if (path == "model.rope_theta") return job.model.positions == "rotary";
  if (is_one_of({"training.lora_alpha", "training.lora_matrices"})) return adapters;
  if (is_one_of({"training.class_weights", "model.num_labels", "model.classifier_dropout", "data.label_field",
                 "data.pair_field"}))
    return classify;
  if (is_one_of({"training.mlm_probability", "training.whole_word_masking"})) return mlm;
  if (is_one_of({"training.freeze", "training.first_row_only", "model.attention_dropout", "model.token_types"}))
    return encoder;
  if (is_one_of({"training.lora_rank", "training.train_layers", "training.sample_prompts", "training.sample_tokens",
                 "data.document"}))
    return !encoder;
  return true;
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
    const Json resolved = Json::parse(job_to_json_text(job));  // every key, by its own name
    std::vector<Setting> settings;
    for (const Option& option : declare_job_options(job)) {
      if (!has_a_part(option.path, job)) continue;
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
