#include "train/run/tuned_settings.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"

namespace brisk {

namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kMostMicroBatchTokens = 16777216;  // as a job may ask for

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

std::string choices_to_json(const Choices& choices) {
  return Json{{"compute_type", dtype_name(choices.compute_type)},
              {"precision", precision_name(choices.compute_type, choices.products)},
              {"micro_batch_tokens", choices.micro_batch_tokens},
              {"isa", choices.isa},
              {"threads", choices.threads}}
      .dump();
}

Choices choices_from_json(const std::string& text, const std::string& source) {
  try {
    const Json json = Json::parse(text);
    const auto tokens = json.at("micro_batch_tokens").get<int64_t>();
    if (tokens < 1 || tokens > kMostMicroBatchTokens) {
      user_error(
          "{}: its micro_batch_tokens are {}, expected 1 to {}; the checkpoint is damaged: remove it to resume "
          "from the one before",
          source, tokens, kMostMicroBatchTokens);
    }
    const std::string type = json.at("compute_type");
    const std::string precision = json.value("precision", "");  // earlier ones had no such key
    return {type == "bf16"  ? DType::bf16
            : type == "f16" ? DType::f16
                            : DType::f32,
            tokens, json.value("isa", ""), json.value("threads", int64_t{0}),
            precision == "tf32"  ? ProductFormat::tf32
            : precision == "fp8" ? ProductFormat::fp8
                                 : ProductFormat::own};
  } catch (const Json::exception& error) {
    user_error(
        "{}: its choices cannot be read ({}); the checkpoint is damaged: remove it to resume from the one before",
        source, error.what());
  }
}

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
