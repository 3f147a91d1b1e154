#include "cli/smoke_test/trial.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "base/files/files.h"
#include "base/files/lines.h"
#include "base/log.h"
#include "base/machine/isa.h"
#include "base/parse_json.h"
#include "base/runtime.h"
#include "infer/precision.h"
#include "models/model_costs.h"
#include "ops/peak/peak.h"
#include "train/run/trainer.h"

namespace brisk {

namespace {

constexpr double kSeconds = 5, kEvaluationSeconds = 2;
constexpr int64_t kSteps = 3;  // the first touches all memory, and is not timed

// Keeps the warnings, and shows nothing.
class WarningLog final : public LogSink {
 public:
  void line(LogLevel level, std::string_view text) override {
    const std::lock_guard lock(mutex_);
    if (level == LogLevel::warning) warnings_.emplace_back(text);
  }
  std::vector<std::string> take() {
    const std::lock_guard lock(mutex_);
    return std::move(warnings_);
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> warnings_;
};

double product_gflops(const EngineOptions& options) {
  Device& device = *options.device;
  const bool fast_bf16 = device.is_cuda() || has_bf16_instructions(active_isa());
  const Arithmetic arithmetic = arithmetic_of(fast_bf16 ? options.compute_type : DType::f32, options.products);
  return std::max(1.0, device.is_cuda() ? gpu_product_gflops(device, arithmetic) : measured_product_gflops(arithmetic));
}

// FLOP of a token of the model where every sequence is as long as it may be.
double flop_per_token(const ModelConfig& model, const BatchLayout& layout, int64_t length) {
  std::vector<RowMeans> means;
  for (const RowCapacity& set : layout.capacities({length, 1, length})) {
    const auto rows = static_cast<double>(set.rows);
    const bool derived = !means.empty() && layout.others[means.size() - 1].derived_from >= 0;
    means.push_back({.rows = rows, .attended = derived ? static_cast<double>(length) : rows, .derived = derived});
  }
  return model_flop_per_token(model, means);
}

}  // namespace

TrialSize trial_size(const Job& job, const EngineOptions& options) {
  constexpr double kReached = 0.5;  // of the products' rate, by a whole step
  const int64_t length = job.training.max_length;
  TrialSize size;
  size.seconds_per_sequence = static_cast<double>(length) * flop_per_token(options.model, options.layout, length) *
                              1e-9 / (kReached * product_gflops(options));
  const int64_t of_step = job.training.batch_size * job.training.gradient_accumulation_steps;
  size.sequences = std::clamp<int64_t>(
      static_cast<int64_t>(std::min(1e6, kSeconds / static_cast<double>(kSteps) / size.seconds_per_sequence)), 1,
      of_step);
  size.steps = static_cast<double>(size.sequences) * size.seconds_per_sequence < kSeconds ? kSteps : 0;
  size.evaluated =
      static_cast<int64_t>(std::min(200.0, kEvaluationSeconds / (size.seconds_per_sequence / 3)));  // forward alone
  return size;
}

Trial try_model(Job job, const TrialSize& size, const std::string& folder, const std::function<bool()>& interrupted) {
  const ModelConfig whole = make_task(job)->model_config(job);
  TrainingOptions& training = job.training;
  training.stop.clear();
  training.max_steps = size.steps;
  training.batch_size = size.sequences;
  training.gradient_accumulation_steps = 1;
  training.measure_micro_batch = false;
  training.eval_steps = size.steps;
  training.logging_steps = 1;
  training.load_best_model_at_end = false;
  training.early_stopping_patience = 0;
  training.sample_tokens = 0;
  training.sample_prompts.clear();
  training.tensorboard = false;
  job.output = folder + "/trial";
  job.data.cache_dir = folder + "/cache";
  Trial trial;
  const auto log = std::make_shared<WarningLog>();
  Runtime runtime({.threads = thread_pool().size(), .log = log});
  const RuntimeScope scope(runtime);
  const auto on_step = [&](const Progress& progress) {
    if (progress.step > 1) trial.tokens_per_second = std::max(trial.tokens_per_second, progress.tokens_per_second);
    if (interrupted()) runtime.cancel();
  };
  const TrainOutcome outcome = train(job, {.on_step = on_step, .trial = true});
  trial.evaluation = outcome.summary.last_evaluation;
  trial.warnings = log->take();
  double tokens = 0, sequences = 0;
  for_each_log_line(job.output + "/ledger.jsonl", [&](const LogLine& line) {
    const auto json = parse_json(std::string(line.text), job.output + "/ledger.jsonl", "");
    trial.training_tokens += json.value("training_tokens", 0.0);
    tokens += json.value("tokens", 0.0);
    sequences += json.value("sequences", 0.0);
  });
  trial.tokens_per_sequence = tokens / std::max(1.0, sequences);
  const Job tried = job_from_json_text(read_file(job.output + "/job.json", file_kind::job), job.output + "/job.json");
  const auto flop = [&](const ModelConfig& model) {
    return flop_per_token(model, make_task(job)->batch_layout(job), job.training.max_length);
  };
  trial.tokens_per_second *= flop(make_task(tried)->model_config(tried)) / flop(whole);
  return trial;
}

}  // namespace brisk
