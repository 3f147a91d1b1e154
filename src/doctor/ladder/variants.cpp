#include "doctor/ladder/variants.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/parse_json.h"
#include "infer/architecture/architecture.h"

namespace brisk {

namespace {

constexpr int64_t kNoEnd = 1'000'000'000;          // steps
constexpr int64_t kNever = 1'000'000'000'000'000;  // eval_steps "end"

Job with_settings(const Job& job, const std::vector<std::string>& settings) {
  std::vector<std::string> notes;
  Job changed = job_from_json_text(job_to_json_text(job), job.name, settings, notes);
  changed.name = job.name;
  resolve_defaults(changed);
  return changed;
}

}  // namespace

Job with_setting(const Job& job, const std::string& key, const std::string& value) {
  return with_settings(job, {key + "=" + value});
}

Job with_fix(const Job& job, const Fix& fix) {
  std::vector<std::string> settings = {fix.key + "=" + fix.value};
  for (const auto& [key, value] : fix.also) settings.push_back(key + "=" + value);
  return with_settings(job, settings);
}

std::string setting_of(const Job& job, const std::string& key) {
  auto json = parse_own_json<nlohmann::ordered_json>(job_to_json_text(job));
  std::string_view rest = key;
  while (!rest.empty()) {
    const size_t dot = rest.find('.');
    const std::string name(rest.substr(0, dot));
    if (!json.is_object() || !json.contains(name)) return "";
    nlohmann::ordered_json inner = json[name];
    json = std::move(inner);
    rest = dot == std::string_view::npos ? "" : rest.substr(dot + 1);
  }
  return json.dump();
}

// One sequence at a time: of an image all its patches.
Job naive_job(const Job& job) {
  const ImageLayout images = architecture_of(job.model).image_layout(job.model);
  const int64_t rows = images.empty() ? job.training.max_length : images.images.front().rows();
  return with_settings(job,
                       {"training.padding=\"max_length\"", "training.precision=\"fp32\"",
                        fmt::format("training.micro_batch_tokens={}", rows), "training.measure_micro_batch=false"});
}

Job for_measuring(const Job& job, const MeasuringLength& length) {
  Job measured = job;
  TrainingOptions& training = measured.training;
  training.stop.clear();
  training.max_steps = kNoEnd;
  training.lr_scheduler = "constant";
  training.warmup_steps = length.warmup_steps;
  training.eval_steps = training.save_steps = kNever;
  training.save_minutes = 0;
  training.load_best_model_at_end = false;
  training.early_stopping_patience = 0;
  training.sample_tokens = 0;
  training.sample_prompts.clear();
  // At a constant learning rate and over and over the same data, a job that is in order may diverge: its steps are as long.
  const TrainingOptions usual;
  training.divergence_guard = false;
  training.divergence_gradient_ratio = usual.divergence_gradient_ratio;
  training.divergence_rollbacks = usual.divergence_rollbacks;
  if (length.micro_batch_tokens > 0 && training.measure_micro_batch) {
    training.micro_batch_tokens = length.micro_batch_tokens;
    training.measure_micro_batch = false;
  }
  if (length.sequences_per_step > 0) {
    training.batch_size = length.sequences_per_step;
    training.gradient_accumulation_steps = 1;
  }
  return measured;
}

}  // namespace brisk
