// What brisk chooses where a job does not say, and the checks that need the whole job.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "base/error.h"
#include "base/rounding.h"
#include "base/runtime.h"
#include "base/text/plural.h"
#include "base/text/spelling.h"
#include "job/job.h"
#include "job/job_options.h"
#include "job/job_task.h"
#include "job/options/options.h"

namespace brisk {

namespace {

constexpr int64_t kHeadWidth = 64;
constexpr double kMuonRate = 0.01;
constexpr int64_t kAutomaticBatchTokens = 4096;  // of an optimizer step, where batch_size is auto

bool heads_fit(const ModelOptions& model, int64_t heads) {
  return model.d_model % heads == 0 && (model.positions != "rotary" || model.d_model / heads % 2 == 0);
}

// The number of heads nearest to `wanted` that fits the width; the larger of two equally near. 1 always divides.
int64_t nearest_heads(const ModelOptions& model, int64_t wanted) {
  for (int64_t distance = 0; distance < model.d_model; ++distance) {
    for (const int64_t heads : {wanted + distance, wanted - distance}) {
      if (heads >= 1 && heads <= model.d_model && heads_fit(model, heads)) return heads;
    }
  }
  return 1;
}

// Two digits, the precision with which a rate is ever chosen.
double two_digits(double value) {
  const double scale = std::pow(10.0, std::floor(std::log10(value)) - 1);
  return std::stod(fmt::format("{:.1e}", std::round(value / scale) * scale));
}

void check_heads(const ModelOptions& model) {
  if (model.head_width == 0 && model.d_model % model.num_heads != 0) {
    const int64_t heads = nearest_heads(model, model.num_heads);
    const int64_t below = model.d_model / model.num_heads * model.num_heads;
    const int64_t width = below > 0 && model.d_model - below < model.num_heads - (model.d_model - below)
                              ? below
                              : below + model.num_heads;
    user_error(
        "model.d_model = {} is not divisible by model.num_heads = {}; each head takes an equal share of the width: use "
        "num_heads = {} or d_model = {}",
        model.d_model, model.num_heads, heads, width);
  }
  if (model.positions == "rotary" && model.d_model / model.num_heads % 2 != 0) {
    const int64_t heads = nearest_heads(model, model.num_heads);
    const std::string mend =
        heads_fit(model, heads) ? fmt::format("num_heads = {}", heads) : fmt::format("d_model = {}", 2 * model.d_model);
    user_error(
        "model.positions = rotary needs an even head width, but d_model / num_heads = {} / {} = {} is odd: use {} or "
        "positions = learned",
        model.d_model, model.num_heads, model.d_model / model.num_heads, mend);
  }
  if ((model.is_encoder() || model.is_encoder_decoder()) && model.num_kv_heads != model.num_heads) {
    user_error("model.num_kv_heads = {}: a {} has as many as num_heads, {}; remove it", model.num_kv_heads, model.type,
               model.num_heads);
  }
  if (model.num_heads % model.num_kv_heads != 0) {
    int64_t nearest = 1;
    for (int64_t kv_heads = 1; kv_heads <= model.num_heads; ++kv_heads) {
      if (model.num_heads % kv_heads == 0 &&
          std::abs(kv_heads - model.num_kv_heads) < std::abs(nearest - model.num_kv_heads)) {
        nearest = kv_heads;
      }
    }
    user_error(
        "model.num_heads = {} is not a multiple of model.num_kv_heads = {}; each key/value head serves a group of "
        "equal size: use num_kv_heads = {}",
        model.num_heads, model.num_kv_heads, nearest);
  }
}

void check_fine_tuning(const Job& job) {
  const TrainingOptions& training = job.training;
  if (training.train_layers == 0 && training.lora_rank == 0) return;
  if (training.lora_rank > 0 && training.train_layers > 0) {
    user_error("training.lora_rank = {} and training.train_layers = {}: choose one of them", training.lora_rank,
               training.train_layers);
  }
  if (training.train_layers > job.model.num_layers) {
    user_error("training.train_layers = {}, but the model has {}: use {} or less, or 0 to train everything",
               training.train_layers, plural(job.model.num_layers, "layer"), job.model.num_layers);
  }
  const std::vector<std::string> known = {"qkv", "attention_out", "up", "down"};
  for (const std::string& name : training.lora_matrices) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const std::string nearest = nearest_word(name, known);
    user_error("training.lora_matrices: '{}' is none of {}{}", name, fmt::join(known, ", "),
               nearest.empty() ? "" : fmt::format("; did you mean {}?", nearest));
  }
}

// Folders of images and texts are the training data where there is no table.
void resolve_image_folders(DataOptions& data) {
  if (data.texts.empty()) {
    if (!data.split.empty())
      user_error("data.split = {}: it divides the files of data.texts, which is not given: name both folders",
                 data.split);
    return;
  }
  if (data.images.empty())
    user_error("data.texts = {}: name the folder with the images of these texts, too: data.images", data.texts);
  if (data.train.empty()) data.train = {DataSource(data.texts)};
  if (data.train.size() == 1 && data.train.front().path == data.texts) return;
  user_error("data.train = {} and data.texts = {}: give a table, or folders of images and of texts; not both",
             data.train.front().path, data.texts);
}

}  // namespace

std::string cache_directory(const DataOptions& data) {
  return data.cache_dir.empty() ? Runtime::current().cache_directory() : data.cache_dir;
}

std::string run_directory_of(const Job& job) {
  return job.output.empty() ? "runs/" + (job.name.empty() ? "run" : job.name) : job.output;
}

std::vector<std::string> resolve_defaults(Job& job) {
  std::vector<std::string> lines;
  check_task(job);
  resolve_image_folders(job.data);
  resolve_encoder(job.model);
  resolve_image_encoder(job.model);
  const auto tell = [&](const std::string& path, const auto& value, std::string rule = "") {
    for (const Option& option : rule.empty() ? declare_job_options(job) : std::vector<Option>()) {
      if (option.path == path) rule = option.automatic_rule;
    }
    lines.push_back(fmt::format("{} = {} ({})", path, value, rule));
  };
  ModelOptions& model = job.model;
  if (model.num_heads == 0) {
    const int64_t wanted = std::max<int64_t>(1, model.d_model / kHeadWidth);
    model.num_heads = nearest_heads(model, wanted);
    tell("model.num_heads", model.num_heads,
         model.num_heads == wanted ? fmt::format("d_model / {}", kHeadWidth)
                                   : fmt::format("the nearest to d_model / {} that divides d_model", kHeadWidth));
  }
  if (model.num_kv_heads == 0) {
    model.num_kv_heads = model.num_heads;
    tell("model.num_kv_heads", model.num_kv_heads);
  }
  check_heads(model);
  if (model.d_ff == 0) {
    // SwiGLU has three matrices instead of two: 8/3 keeps the number of weights.
    const bool gated = model.activation == "swiglu" || model.activation == "geglu";
    model.d_ff = gated ? round_up((8 * model.d_model + 2) / 3, 64) : 4 * model.d_model;
    tell("model.d_ff", model.d_ff, gated ? "8/3 d_model, rounded up to a multiple of 64" : "4 d_model");
  }

  TrainingOptions& training = job.training;
  if (training.num_epochs == 0 && training.stop.empty() && training.max_steps == 0) training.num_epochs = 1;
  if (model.context == 0) model.context = training.max_length;
  if (training.max_length > model.context) {
    if (model.positions == "learned") {
      user_error(
          "training.max_length = {} is more than the model's {} learned positions (model.context): use {} or less",
          training.max_length, model.context, model.context);
    }
    model.context = training.max_length;
  }
  resolve_encoder_decoder(model);
  check_encoder_decoder(model);
  if (model.reference) {  // as its first program had it: see docs/mu.md
    if (training.window_stride == 0) {
      training.window_stride = std::max<int64_t>(1, training.max_length / 2);
      tell("training.window_stride", training.window_stride,
           "model.reference: max_length / 2, so that windows overlap");
    }
    if (training.schedule_ratio == 0) {
      training.schedule_ratio = static_cast<double>(training.gradient_accumulation_steps);
      tell("training.schedule_ratio", training.schedule_ratio,
           "model.reference: gradient_accumulation_steps, as if the schedule counted batches");
    }
  }
  if (training.window_stride > training.max_length) {
    user_error(
        "training.window_stride = {} is more than training.max_length = {}: the tokens between two sequences would be "
        "left out; use {} or less",
        training.window_stride, training.max_length, training.max_length);
  }
  if (training.batch_size == 0) {
    training.batch_size = std::max<int64_t>(1, kAutomaticBatchTokens / training.max_length);
    training.measure_micro_batch = training.micro_batch_tokens == 0;
    tell("training.batch_size", training.batch_size,
         fmt::format("auto: {} tokens / max_length; it affects the result, as any batch size does, so it never "
                     "depends on timing",
                     kAutomaticBatchTokens));
  }
  check_fine_tuning(job);
  if (training.lora_rank > 0 && training.lora_alpha == 0) {
    training.lora_alpha = 2 * static_cast<double>(training.lora_rank);
    tell("training.lora_alpha", training.lora_alpha);
  }
  if (const double rate = encoder_learning_rate(job); training.learning_rate == 0 && rate > 0) {
    training.learning_rate = two_digits(rate);
    tell("training.learning_rate", training.learning_rate, fmt::format("task {}", job.task));
  }
  // Learned weights are soon unlearned. Adapters are new, and AdamW's.
  const bool learned = !model.from.empty() && training.lora_rank == 0;
  const std::string why_less = learned ? "; a tenth of it for weights that are trained already" : "";
  if (training.learning_rate == 0) {
    const double at_256 = training.optimizer == "muon" && training.lora_rank == 0 ? 4e-3 : 1e-3;
    const double rate =
        std::clamp(at_256 * std::sqrt(256.0 / static_cast<double>(model.d_model)), 0.1 * at_256, 3 * at_256);
    training.learning_rate = two_digits(learned ? rate / 10 : rate);
    tell("training.learning_rate", training.learning_rate,
         fmt::format("{:g} x sqrt(256 / d_model), kept within {:g} to {:g}{}", at_256, 0.1 * at_256, 3 * at_256,
                     why_less));
  }
  if (training.muon_learning_rate == 0) {
    training.muon_learning_rate = learned ? kMuonRate / 10 : kMuonRate;
    if (learned && training.optimizer == "muon")
      tell("training.muon_learning_rate", training.muon_learning_rate, fmt::format("{:g}{}", kMuonRate, why_less));
  }
  if (training.sample_tokens == 0 && !training.sample_prompts.empty()) {
    training.sample_tokens = 64;
    tell("training.sample_tokens", training.sample_tokens);
  }
  if (job.output.empty()) {
    job.output = run_directory_of(job);
    tell("output", job.output);
  }
  if (job.name.empty()) job.name = std::filesystem::path(job.output).filename().string();
  if (job.name.empty()) job.name = "run";
  return lines;
}

int64_t warmup_steps_of(const TrainingOptions& training, int64_t total_steps) {
  if (training.warmup_steps >= 0) return std::min(training.warmup_steps, total_steps);
  return std::min<int64_t>(total_steps, std::llround(training.warmup_ratio * static_cast<double>(total_steps)));
}

}  // namespace brisk
