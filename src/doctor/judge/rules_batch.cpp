// Rules about what is computed at once: padding, the micro-batch, the lengths, what is stored for the backward pass.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/log.h"
#include "base/text/plural.h"
#include "doctor/judge/compose.h"
#include "doctor/judge/rule_groups.h"
#include "doctor/judge/shares.h"
#include "job/tables.h"

namespace brisk {

namespace {

constexpr double kFarFromTheKnee = 0.9;  // of the best speed
constexpr double kMemoryIsNearlyFull = 0.8;
constexpr double kRoomForLongerSteps = 1.25;
constexpr double kOutlier = 4;                                 // medians
constexpr int64_t kUsualRows = 4096, kUsualRowsOnGpu = 65536;  // of a micro-batch that brisk chooses (docs/job.md)

double mean_square_of_lengths(const DataReadings& data) {
  double sum = 0, sequences = 0;
  for (const DataReadings::Bucket& bucket : data.lengths) {
    const double length = static_cast<double>(bucket.first + bucket.last) / 2;
    sum += static_cast<double>(bucket.sequences) * length * length;
    sequences += static_cast<double>(bucket.sequences);
  }
  return sequences > 0 ? sum / sequences : 0;
}

// The share of padded attention that is left without padding. A causal row attends to the padding before it; where rows see
// the whole of their sequence, those of the padding attend to what is none.
double needed_attention(const Readings& readings, double needed_rows) {
  const StretchReadings& stretch = readings.stretch;
  const double square = mean_square_of_lengths(readings.data), sequences = static_cast<double>(stretch.sequences);
  if (square <= 0 || sequences <= 0) return needed_rows;
  const double padded = stretch.rows / sequences, real = stretch.tokens / sequences;
  return std::min(square / (padded * (readings.job.model.is_encoder() ? real : padded)), 1.0);
}

std::optional<Finding> look_padding(const Readings& readings) {
  const StretchReadings& stretch = readings.stretch;
  const EpochShares shares(readings);
  if (!shares.known() || stretch.tokens <= 0 || stretch.rows <= stretch.tokens) return {};
  const double needed = stretch.tokens / stretch.rows, needed_in_attention = needed_attention(readings, needed);
  double row_by_row =
      shares.of({Phase::forward_linear, Phase::forward_norm, Phase::forward_elementwise, Phase::forward_embedding,
                 Phase::backward_linear, Phase::backward_norm, Phase::backward_elementwise, Phase::backward_embedding});
  // A decoder projects every row onto the vocabulary, an encoder those that have a target.
  if (!readings.job.model.is_encoder()) row_by_row += shares.of({Phase::loss});
  const double attention = shares.of({Phase::forward_attention, Phase::backward_attention});
  const std::string& mode = readings.job.training.padding;
  Finding finding{.id = "padding"};
  finding.evidence = {
      {"rows that are padding", percent_text(1 - needed),
       fmt::format("{} of {} computed", number_text(stretch.rows - stretch.tokens), number_text(stretch.rows))},
      {"time that grows with the rows", percent_text(row_by_row + attention), "of an epoch, attention included"},
      {"mean length", number_text(stretch.tokens / std::max<double>(1, static_cast<double>(stretch.sequences))),
       fmt::format("tokens; padded to {}",
                   number_text(stretch.rows / std::max<double>(1, static_cast<double>(stretch.sequences))))}};
  const std::string padded_to = mode == "max_length"
                                    ? fmt::format("training.max_length {}", readings.job.training.max_length)
                                    : "the longest sequence beside them";
  finding.cause = fmt::format("{} of the computed rows are padding up to {}.", percent_text(1 - needed), padded_to);
  finding.fix = mode != "none" ? set_key("training.padding", json_string("none"))
                               : advise("pad to the longest sequence of a batch at most, or not at all");
  finding.predicted_gain = gain_of_saving(row_by_row * (1 - needed) + attention * (1 - needed_in_attention));
  finding.sameness = Sameness::same_maths;
  return finding;
}

// How many sequences are computed at once, and how many could be.
struct MicroBatches {
  double own = 0;          // sequences of one
  double step = 0;         // of an optimizer step: no micro-batch is larger
  double rows_of_one = 0;  // of a sequence, padding included
  const CurvePoint* knee = nullptr;
  double own_speed = 0, best_speed = 0;

  explicit MicroBatches(const Readings& readings) {
    const StretchReadings& stretch = readings.stretch;
    if (stretch.micro_batches <= 0 || stretch.sequences <= 0) return;
    const TrainingOptions& training = readings.job.training;
    own = static_cast<double>(stretch.sequences) / static_cast<double>(stretch.micro_batches);
    step = stretch.sequences_per_step > 0
               ? stretch.sequences_per_step
               : static_cast<double>(training.batch_size * training.gradient_accumulation_steps);
    rows_of_one = stretch.rows / static_cast<double>(stretch.sequences);
    knee = knee_of(readings.batch_curve);
    own_speed = speed_at(readings.batch_curve, own);
    for (const CurvePoint& point : readings.batch_curve) best_speed = std::max(best_speed, point.tokens_per_second);
  }
  bool known() const { return knee != nullptr && own > 0 && own_speed > 0 && rows_of_one > 0; }
  bool is_part_of_the_step() const { return step >= 1.5 * own; }
  bool is_too_small() const { return own < knee->x && own_speed < kFarFromTheKnee * best_speed; }
};

int64_t usual_rows(const Readings& readings) {
  return readings.stretch.gpu.name.empty() ? kUsualRows : kUsualRowsOnGpu;
}

// Token rows that hold so many sequences, though those of some steps are longer than the mean.
int64_t rows_for(const Readings& readings, const MicroBatches& batches, double sequences) {
  const auto longest = static_cast<double>(std::max(readings.data.longest, int64_t{1}));
  return static_cast<int64_t>(std::ceil(
      sequences * std::min(kRoomForLongerSteps * batches.rows_of_one, std::max(longest, batches.rows_of_one))));
}

// training.micro_batch_tokens: "auto" where brisk would choose about as many.
std::string micro_batch_value(const Readings& readings, int64_t rows) {
  const bool is_usual = rows <= usual_rows(readings) && 2 * rows > usual_rows(readings);
  return readings.job.training.micro_batch_tokens > 0 && is_usual ? kJsonAuto : json_number(static_cast<double>(rows));
}

std::vector<Evidence> evidence_of(const MicroBatches& batches) {
  return {{"sequences in a micro-batch", number_text(batches.own), speed_text(batches.own_speed)},
          {"knee of the measured curve", plural(std::llround(batches.knee->x), "sequence"),
           speed_text(batches.knee->tokens_per_second) + ", at least 95 % of the best"},
          {"sequences in an optimizer step", number_text(batches.step), ""}};
}

std::optional<Finding> micro_batch_too_small(const Readings& readings, const MicroBatches& batches, std::string id) {
  const double target = std::min(batches.knee->x, batches.step);
  const int64_t rows = rows_for(readings, batches, target);
  if (rows <= readings.job.training.micro_batch_tokens) return {};  // something else divides the step
  const double speedup = speed_at(readings.batch_curve, target) / batches.own_speed;
  Finding finding{.id = std::move(id), .evidence = evidence_of(batches)};
  finding.cause = fmt::format("Micro-batches of {} compute {} of the best speed that was measured, {}.",
                              plural(std::llround(batches.own), "sequence"),
                              percent_text(batches.own_speed / batches.best_speed), speed_text(batches.best_speed));
  finding.fix = set_key("training.micro_batch_tokens", micro_batch_value(readings, rows));
  finding.predicted_gain = amdahl(EpochShares(readings).of(product_phases()), speedup);
  finding.sameness = Sameness::same_maths;
  return finding;
}

Finding batch_too_small(const Readings& readings, const MicroBatches& batches) {
  const TrainingOptions& training = readings.job.training;
  const double accumulated = static_cast<double>(std::max<int64_t>(training.gradient_accumulation_steps, 1));
  const double batch = std::ceil(batches.knee->x / accumulated);
  const double ratio = batch / std::max<double>(1, static_cast<double>(training.batch_size));
  Finding finding{.id = "batch_size", .evidence = evidence_of(batches)};
  finding.cause = fmt::format("A step of {} computes {} of the best speed that was measured, {}.",
                              plural(std::llround(batches.step), "sequence"),
                              percent_text(batches.own_speed / batches.best_speed), speed_text(batches.best_speed));
  finding.fix = set_key("training.batch_size", json_number(batch));
  follow_batch(*finding.fix, readings.job, ratio);
  const int64_t rows = rows_for(readings, batches, batches.knee->x);
  if (rows > (training.micro_batch_tokens > 0 ? training.micro_batch_tokens : usual_rows(readings)))
    finding.fix->also.emplace_back("training.micro_batch_tokens",
                                   micro_batch_value(readings, rows));  // or it is divided
  finding.predicted_gain =
      amdahl(EpochShares(readings).steps(), speed_at(readings.batch_curve, batches.knee->x) / batches.own_speed);
  finding.sameness = Sameness::changes_maths;
  finding.change = fmt::format(
      "an optimizer step sees {} times the sequences, so an epoch has that many times fewer steps", number_text(ratio));
  return finding;
}

double share_of_memory(const Readings& readings) {
  const GpuReadings& gpu = readings.stretch.gpu;
  if (!gpu.name.empty())
    return gpu.memory_bytes > 0 ? static_cast<double>(gpu.memory_used_bytes) / static_cast<double>(gpu.memory_bytes)
                                : 0;
  const int64_t total = readings.machine.memory_total_bytes;
  return total > 0 ? static_cast<double>(readings.stretch.peak_memory_bytes) / static_cast<double>(total) : 0;
}

std::optional<Finding> batch_too_large(const Readings& readings, const MicroBatches& batches) {
  const double memory = share_of_memory(readings);
  const CurvePoint& knee = *batches.knee;
  if (memory < kMemoryIsNearlyFull || 2 * knee.x > batches.own) return {};
  Finding finding{.id = "batch_size", .evidence = evidence_of(batches)};
  finding.evidence.insert(finding.evidence.begin(), {"memory in use", percent_text(memory), "of what there is"});
  finding.cause = fmt::format("Micro-batches of {} take {} of the memory and are no faster than those of {}.",
                              plural(std::llround(batches.own), "sequence"), percent_text(memory), number_text(knee.x));
  finding.fix =
      set_key("training.micro_batch_tokens", micro_batch_value(readings, rows_for(readings, batches, knee.x)));
  finding.predicted_gain =
      std::max(1.0, amdahl(EpochShares(readings).of(product_phases()), knee.tokens_per_second / batches.own_speed));
  finding.sameness = Sameness::same_maths;
  finding.shown_without_gain = true;
  return finding;
}

std::optional<Finding> look_batch_size(const Readings& readings) {
  const MicroBatches batches(readings);
  if (!batches.known()) return {};
  if (!batches.is_too_small()) return batch_too_large(readings, batches);
  if (is_launch_bound(readings.stretch)) return {};  // `launch_bound`
  if (!batches.is_part_of_the_step()) return batch_too_small(readings, batches);
  if (readings.job.training.gradient_accumulation_steps > 1) return {};  // `accumulation`
  return micro_batch_too_small(readings, batches, "batch_size");
}

std::optional<Finding> look_accumulation(const Readings& readings) {
  const MicroBatches batches(readings);
  const int64_t accumulated = readings.job.training.gradient_accumulation_steps;
  if (accumulated <= 1 || !batches.known() || !batches.is_too_small() || !batches.is_part_of_the_step()) return {};
  std::optional<Finding> finding = micro_batch_too_small(readings, batches, "accumulation");
  if (finding)
    finding->cause += fmt::format(" Accumulating {} saves memory, not time.", plural(accumulated, "batch", "batches"));
  return finding;
}

// What is left of an epoch's tokens, and of its attention, when no sequence is longer than `longest`.
struct Shortened {
  double tokens = 1, attention = 1;
  Shortened(const DataReadings& data, int64_t longest, bool loses_the_end) {
    double all = 0, left = 0, all_pairs = 0, left_pairs = 0;
    for (const DataReadings::Bucket& bucket : data.lengths) {
      const auto count = static_cast<double>(bucket.sequences);
      const double length = static_cast<double>(bucket.first + bucket.last) / 2;
      const double cut = std::min(length, static_cast<double>(longest));
      all += count * length;
      left += count * (loses_the_end ? cut : length);
      all_pairs += count * length * length;
      left_pairs += count * (loses_the_end ? cut : length) * cut;
    }
    if (all > 0) tokens = left / all, attention = left_pairs / all_pairs;
  }
};

std::optional<Finding> look_long_outliers(const Readings& readings) {
  const DataReadings& data = readings.data;
  const EpochShares shares(readings);
  if (!shares.known() || data.median <= 0 || data.p99 <= 0 || data.lengths.empty()) return {};
  if (static_cast<double>(data.longest) < kOutlier * static_cast<double>(data.median)) return {};
  const int64_t limit = (data.p99 + 7) / 8 * 8;
  if (limit >= data.longest) return {};
  const TaskTraits* task = find_task_traits(readings.job.task);
  if (task != nullptr && task->trains_encoder_decoder) return {};  // longer pairs would be left out
  const bool loses_the_end = task != nullptr && task->trains_encoder;
  const Shortened left(data, limit, loses_the_end);
  const double attention = shares.of({Phase::forward_attention, Phase::backward_attention});
  const double others = shares.of(product_phases()) - attention;
  Finding finding{.id = "long_outliers"};
  finding.evidence = {{"longest sequence", number_text(static_cast<double>(data.longest)), "tokens"},
                      {"99 % are no longer than", number_text(static_cast<double>(data.p99)), "tokens"},
                      {"median", number_text(static_cast<double>(data.median)), "tokens"},
                      {"tokens beyond that", percent_text(1 - left.tokens), loses_the_end ? "of an epoch" : ""}};
  if (!loses_the_end) finding.evidence.pop_back();
  if (data.cut > 0)
    finding.evidence.push_back({"texts that lose their end now", number_text(static_cast<double>(data.cut)),
                                fmt::format("at training.max_length {}", readings.job.training.max_length)});
  finding.cause =
      fmt::format("1 % of the sequences are longer than {} tokens, up to {} ({:.1f} times the median).", data.p99,
                  data.longest, static_cast<double>(data.longest) / static_cast<double>(data.median));
  finding.fix = set_key("training.max_length", json_number(static_cast<double>(limit)));
  finding.predicted_gain = gain_of_saving(others * (1 - left.tokens) + attention * (1 - left.attention));
  finding.sameness = Sameness::changes_maths;
  finding.change = loses_the_end
                       ? fmt::format("texts of more than {} tokens lose their end", limit)
                       : fmt::format("texts are cut into pieces of at most {} tokens, which see less context", limit);
  return finding;
}

// Of the activations that are not stored, in all: an upper estimate for the usual shape of a layer (docs/growth.md has 36
// bytes a row and column of a layer in bf16).
double bytes_of_activations(const Readings& readings) {
  const StretchReadings& stretch = readings.stretch;
  if (stretch.micro_batches <= 0) return 0;
  const double rows = stretch.rows / static_cast<double>(stretch.micro_batches);
  const double each = readings.model.precision == "bf16" || readings.model.precision == "fp16" ? 36 : 72;
  return each * rows * static_cast<double>(readings.model.width) * static_cast<double>(readings.model.layers);
}

std::optional<Finding> look_activation_checkpointing(const Readings& readings) {
  const StretchReadings& stretch = readings.stretch;
  const EpochShares shares(readings);
  if (!shares.known() || readings.job.training.gradient_checkpointing <= 0 || stretch.planned_memory_bytes <= 0)
    return {};
  const bool on_cpu = stretch.gpu.name.empty();
  const auto memory = static_cast<double>(on_cpu ? readings.machine.memory_total_bytes : stretch.gpu.memory_bytes);
  const auto available = static_cast<double>(readings.machine.memory_available_bytes);
  const double activations = bytes_of_activations(readings);
  const double needed = static_cast<double>(stretch.planned_memory_bytes) + activations;
  if (memory <= 0 || activations <= 0 || needed > kMemoryIsNearlyFull * memory) return {};
  if (on_cpu && available >= 0 && activations > available) return {};  // other programs have the rest
  constexpr double kForwards = 2;  // each layer's, with the one that is computed again
  Finding finding{.id = "activation_checkpointing"};
  finding.evidence = {
      {"memory without checkpointing", "at most " + format_bytes(needed), fmt::format("of {}", format_bytes(memory))},
      {"forward passes", percent_text(shares.of(forward_phases())), "of the time of an epoch"}};
  finding.cause = fmt::format(
      "Activations are computed again in the backward pass (training.gradient_checkpointing {}), though all of them take "
      "at most {} and would fit.",
      readings.job.training.gradient_checkpointing, format_bytes(activations));
  finding.fix = set_key("training.gradient_checkpointing", "0");
  finding.predicted_gain = amdahl(shares.of(forward_phases()), kForwards);
  finding.sameness = Sameness::same_maths;
  return finding;
}

constexpr std::array kBatchRules = {
    Rule{"padding", look_padding,
         "the step time does not depend on how long the texts are; short texts train as slowly as long ones",
         "rows that are only padding are computed and thrown away",
         "`training.padding: none`, brisk's default: a batch is ragged and nothing is padded"},
    Rule{
        "batch_size", look_batch_size,
        "few tokens per second although all cores or the GPU look busy; or memory that is nearly full and no speed for it",
        "the measured curve of speed against sequences at once has a knee, and the job is far from it on either side",
        "a micro-batch at the knee (`training.micro_batch_tokens`, which changes no result); if the whole step is smaller, "
        "a larger `training.batch_size`, with the learning rates times the square root of the ratio"},
    Rule{"long_outliers", look_long_outliers,
         "some steps take several times as long as the others, or need far more memory",
         "a few sequences are many times longer than the rest",
         "a `training.max_length` that holds 99 % of them; it cuts the others, so check that their ends do not matter"},
    Rule{"accumulation", look_accumulation, "gradient accumulation was turned on to be faster and is not",
         "accumulation saves memory, not time; here the micro-batches it consists of are too small to be fast",
         "larger micro-batches (`training.micro_batch_tokens`); the optimizer step, and so the result, stays as it is"},
    Rule{"activation_checkpointing", look_activation_checkpointing,
         "training became 20 to 33 % slower when checkpointing was turned on",
         "activations are computed twice to save memory that is there",
         "`training.gradient_checkpointing: 0`; turn it on only for what does not fit otherwise"},
};

}  // namespace

std::span<const Rule> rules_of_batch() { return kBatchRules; }

}  // namespace brisk
