#include "train/run/resume_check.h"

#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "base/error.h"

namespace brisk {

namespace {

using Json = nlohmann::ordered_json;

// These may change between a run and its continuation: they do not touch the curve.
const std::set<std::string> kFree = {"/name",
                                     "/comment",
                                     "/output",
                                     "/device",
                                     "/model/vocab_size",  // what the tokenizer had; the tokenizer itself is the run's
                                     "/training/logging_steps",
                                     "/training/save_steps",
                                     "/training/save_minutes",
                                     "/training/save_total_limit",
                                     "/training/load_best_model_at_end",
                                     "/training/early_stopping_patience",
                                     "/training/sample_tokens",
                                     "/training/tensorboard",
                                     "/training/histogram_steps",
                                     "/training/num_workers",
                                     "/training/threads",
                                     "/data/tokenizer",
                                     "/data/cache_dir"};

bool is_free(const std::string& key) {
  if (kFree.contains(key) || key.starts_with("/training/sample_prompts")) return true;
  // Where the text lies. That it is the same text is seen by its fingerprint.
  if (key.starts_with("/data/validation/")) return true;
  constexpr std::string_view kTrain = "/data/train/";
  return key.starts_with(kTrain) && (key.find('/', kTrain.size()) == std::string::npos || key.ends_with("/path"));
}

}  // namespace

void check_same_job(const std::string& saved_text, const std::string& saved_path, const Job& job) {
  Job saved_job = job_from_json_text(saved_text, saved_path);
  resolve_defaults(saved_job);  // of keys that an earlier brisk did not have
  const Json saved = Json::parse(job_to_json_text(saved_job)).flatten();
  const Json now = Json::parse(job_to_json_text(job)).flatten();
  std::set<std::string> keys;
  for (const auto& [key, value] : saved.items()) keys.insert(key);
  for (const auto& [key, value] : now.items()) keys.insert(key);
  for (const std::string& key : keys) {
    if (is_free(key)) continue;
    const Json before = saved.contains(key) ? saved.at(key) : Json();
    const Json after = now.contains(key) ? now.at(key) : Json();
    if (before == after) continue;
    std::string name = key.substr(1);
    for (char& c : name) c = c == '/' ? '.' : c;
    const auto text = [](const Json& value) { return value.is_null() ? "nothing" : value.dump(); };
    user_error(
        "{}: the run was started with {} = {}, the job now says {}; resuming would change the loss curve: set it back, "
        "or train anew with another --output",
        saved_path, name, text(before), text(after));
  }
}

}  // namespace brisk
