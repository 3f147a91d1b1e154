// Rules about the model and its arithmetic: number format, vocabulary, length, size, frozen layers, the optimizer.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/log.h"
#include "doctor/judge/compose.h"
#include "doctor/judge/rule_groups.h"
#include "doctor/judge/shares.h"
#include "job/tables.h"

namespace brisk {

namespace {

constexpr double kLargeHead = 0.3, kLargeAttention = 0.25, kLargeOptimizer = 0.15;  // of the time
constexpr double kParametersPerToken = 5;  // trained from scratch, more learn the text by heart
constexpr double kWantedOptimizerShare = 0.05;

std::optional<Finding> look_precision(const Readings& readings) {
  const EpochShares shares(readings);
  const std::string& own = readings.model.precision;
  if (!shares.known() || own.empty() || leaves_tensor_cores_idle(readings)) return {};  // `no_tensor_cores`
  std::string best;
  double gain = 1;
  for (const char* format : {"bf16", "tf32", "fp16", "fp32"}) {
    const double its = format == own ? 1 : gain_of_format(readings, format);
    if (its > gain + 1e-9) gain = its, best = format;
  }
  if (best.empty()) return {};
  Finding finding{.id = "precision"};
  const bool timed = rate_in(readings.precision_tokens_per_second, own) > 0;
  const auto& rates = timed ? readings.precision_tokens_per_second : readings.machine.product_gflops;
  const auto rate_text = [&](const std::string& format) {
    return timed ? speed_text(rate_in(rates, format)) : fmt::format("{} GFLOP/s", number_text(rate_in(rates, format)));
  };
  const char* what = timed ? "steps of this model in" : "large products in";
  finding.evidence = {
      {fmt::format("{} {}", what, best), rate_text(best), "measured here"},
      {fmt::format("{} {}", what, own), rate_text(own), "the job's"},
      {"products and loss", percent_text(shares.of({Phase::forward_linear, Phase::backward_linear, Phase::loss})),
       "of the time of an epoch"}};
  finding.cause = fmt::format("The job multiplies in {}; {} is {} as fast on this machine ({} against {}).", own, best,
                              ratio_text(rate_in(rates, best) / rate_in(rates, own)), rate_text(best), rate_text(own));
  finding.fix = set_key("training.precision", json_string(best));
  finding.predicted_gain = gain;
  finding.sameness = Sameness::same_maths;
  return finding;
}

std::optional<Finding> look_head_cost(const Readings& readings) {
  const EpochShares shares(readings);
  const double head = shares.of({Phase::loss}), vocabulary = static_cast<double>(readings.model.vocabulary);
  if (head <= kLargeHead || vocabulary <= 0) return {};
  const double used = readings.data.distinct_tokens;
  const bool mostly_unused = used > 0 && used < 0.8 * vocabulary;
  const double smaller = mostly_unused ? std::ceil(used / 64) * 64 : std::floor(vocabulary / 2);
  if (smaller < 1 || smaller >= vocabulary) return {};
  Finding finding{.id = "head_cost"};
  finding.evidence = {{"output projection and softmax", percent_text(head), "of the time of an epoch"},
                      {"vocabulary", number_text(vocabulary), "entries"}};
  if (used > 0) finding.evidence.push_back({"entries that the data uses", number_text(used), ""});
  finding.cause = fmt::format(
      "The projection onto {} entries and its softmax take {} of the time (the look-up of embeddings does not depend on "
      "the vocabulary).",
      number_text(vocabulary), percent_text(head));
  const std::string advice =
      "a text has more tokens with a smaller vocabulary: compare the time of an epoch, not tokens per second";
  const bool is_trained_here = readings.job.data.tokenizer.empty() && readings.job.model.from.empty();
  finding.fix = is_trained_here ? set_key("model.vocab_size", json_number(smaller), advice)
                                : advise("a tokenizer with fewer entries; " + advice);
  finding.predicted_gain = amdahl(head, vocabulary / smaller);
  finding.sameness = Sameness::changes_maths;
  finding.change = "another vocabulary: other tokens, and losses per token that cannot be compared";
  return finding;
}

// The attention that is left when sequences are cut into pieces of at most `length`.
double attention_left(const DataReadings& data, double length) {
  double all = 0, left = 0;
  const auto add = [&](double count, double of_one) {
    all += count * of_one * of_one;
    left += count * of_one * std::min(of_one, length);
  };
  for (const DataReadings::Bucket& bucket : data.lengths)
    add(static_cast<double>(bucket.sequences), static_cast<double>(bucket.first + bucket.last) / 2);
  if (all <= 0 && data.mean > 0) add(1, data.mean);
  return all > 0 ? left / all : 1;
}

std::optional<Finding> look_attention_length(const Readings& readings) {
  const EpochShares shares(readings);
  if (reads_images(readings.job.model.type)) return {};  // an image has as many patches as the model reads
  const double attention = shares.of({Phase::forward_attention, Phase::backward_attention});
  const int64_t longest =
      std::min(readings.job.training.max_length, readings.data.longest > 0 ? readings.data.longest : INT64_MAX);
  if (attention <= kLargeAttention || longest < 16) return {};
  const int64_t half = longest / 2;
  const double gain = gain_of_saving(attention * (1 - attention_left(readings.data, static_cast<double>(half))));
  Finding finding{.id = "attention_length"};
  finding.evidence = {{"attention", percent_text(attention), "of the time of an epoch"},
                      {"longest sequence", number_text(static_cast<double>(longest)), "tokens"},
                      {"mean length", number_text(readings.data.mean), "tokens"}};
  finding.cause = fmt::format("Attention is {} of the time: half the length would gain {} per token.",
                              percent_text(attention), ratio_text(gain));
  finding.fix = set_key("training.max_length", json_number(static_cast<double>(half)));
  finding.predicted_gain = gain;
  finding.sameness = Sameness::changes_maths;
  finding.change = fmt::format("no token sees further than {} tokens", half);
  return finding;
}

std::optional<Finding> more_memory_than_there_is(const Readings& readings) {
  const StretchReadings& stretch = readings.stretch;
  const int64_t memory = stretch.gpu.name.empty() ? readings.machine.memory_total_bytes : stretch.gpu.memory_bytes;
  if (memory <= 0 || stretch.planned_memory_bytes <= memory) return {};
  Finding finding{.id = "model_too_large"};
  finding.evidence = {{"memory by plan", format_bytes(static_cast<double>(stretch.planned_memory_bytes)),
                       fmt::format("of {}", format_bytes(static_cast<double>(memory)))}};
  finding.cause = fmt::format("The training needs {} and there are {}.",
                              format_bytes(static_cast<double>(stretch.planned_memory_bytes)),
                              format_bytes(static_cast<double>(memory)));
  finding.fix = advise(
      "a smaller model or a distilled one (model.type distilbert, model.from), a smaller training.micro_batch_tokens, or "
      "training.gradient_checkpointing 1");
  finding.sameness = Sameness::changes_maths;
  finding.change = "another model";
  finding.shown_without_gain = true;
  return finding;
}

std::optional<Finding> look_model_too_large(const Readings& readings) {
  if (std::optional<Finding> finding = more_memory_than_there_is(readings)) return finding;
  const double parameters = static_cast<double>(readings.model.parameters), tokens = readings.data.tokens;
  const EpochShares shares(readings);
  const int64_t layers = readings.model.layers;
  if (!readings.job.model.from.empty() || tokens <= 0 || parameters <= kParametersPerToken * tokens) return {};
  Finding finding{.id = "model_too_large"};
  finding.evidence = {{"parameters for each token of the data", number_text(parameters / tokens), ""},
                      {"parameters", format_count(parameters), ""},
                      {"tokens", format_count(tokens), "in an epoch"}};
  finding.cause = fmt::format(
      "{} parameters are trained from scratch on {} tokens, {} for each: more of them learn the "
      "text by heart.",
      format_count(parameters), format_count(tokens), number_text(parameters / tokens));
  const std::string advice = "more data, or a trained model to start from (model.from); of an encoder, a distilled one";
  finding.fix =
      layers > 1 ? set_key("model.num_layers", json_number(static_cast<double>(layers / 2)), advice) : advise(advice);
  if (layers > 1 && shares.known()) {
    const double in_layers =
        shares.of(product_phases()) - shares.of({Phase::forward_embedding, Phase::backward_embedding, Phase::loss});
    finding.predicted_gain = amdahl(in_layers, static_cast<double>(layers) / static_cast<double>(layers / 2));
  }
  finding.sameness = Sameness::changes_maths;
  finding.change = "another model, with half of the layers";
  finding.is_quality = true;
  return finding;
}

std::optional<Finding> look_frozen_recomputed(const Readings& readings) {
  const TrainingOptions& training = readings.job.training;
  const EpochShares shares(readings);
  const int64_t layers = readings.model.layers, frozen = std::min(training.freeze, layers);
  const double epochs = readings.course.epochs;
  if (!shares.known() || frozen < 1 || layers < 1 || epochs <= 1) return {};
  if (training.cache_frozen && !training.frozen_dropout) return {};
  const double embedding = shares.of({Phase::forward_embedding});
  const double forward = shares.of(forward_phases()) - embedding;
  const double share = embedding + forward * static_cast<double>(frozen) / static_cast<double>(layers);
  Finding finding{.id = "frozen_recomputed"};
  finding.evidence = {{"forward pass of what is frozen", percent_text(share), "of the time of an epoch"},
                      {"frozen layers", fmt::format("{} of {}", frozen, layers), "and the embeddings"},
                      {"epochs", number_text(epochs), "each computes the same again"}};
  finding.cause = fmt::format("The {} frozen layers are computed again in each of {} epochs: {} of the time.", frozen,
                              number_text(epochs), percent_text(share));
  if (training.frozen_dropout) {
    finding.fix = set_key("training.frozen_dropout", "false");
    if (!training.cache_frozen) finding.fix->also = {{"training.cache_frozen", "true"}};
    finding.sameness = Sameness::changes_maths;
    finding.change = "frozen layers drop no activations";
  } else {
    finding.fix = set_key("training.cache_frozen", "true");
    finding.sameness = Sameness::same_maths;
  }
  finding.predicted_gain = gain_of_saving(share * (1 - 1 / epochs));
  return finding;
}

std::optional<Finding> look_optimizer_cost(const Readings& readings) {
  const EpochShares shares(readings);
  const double of_step = shares.of_steps({Phase::optimizer, Phase::clipping});
  const TrainingOptions& training = readings.job.training;
  if (of_step <= kLargeOptimizer || training.batch_size <= 0) return {};
  int64_t factor = 2;
  while (factor < 8 && of_step / static_cast<double>(factor) > kWantedOptimizerShare) factor *= 2;
  Finding finding{.id = "optimizer_cost"};
  finding.evidence = {
      {"optimizer and clipping", percent_text(of_step), "of a step"},
      {"parameters that are updated", format_count(static_cast<double>(readings.model.trained_parameters)),
       "in every step"},
      {"sequences in a step",
       number_text(static_cast<double>(training.batch_size * training.gradient_accumulation_steps)), ""}};
  finding.cause = fmt::format("Updating {} parameters takes {} of every step, because a step has only {} sequences.",
                              format_count(static_cast<double>(readings.model.trained_parameters)),
                              percent_text(of_step), training.batch_size * training.gradient_accumulation_steps);
  finding.fix = set_key("training.batch_size", json_number(static_cast<double>(training.batch_size * factor)),
                        training.optimizer == "muon"
                            ? "AdamW's update costs less than Muon's, but takes more steps to the same loss"
                            : "");
  follow_batch(*finding.fix, readings.job, static_cast<double>(factor));
  finding.predicted_gain = amdahl(shares.of({Phase::optimizer, Phase::clipping}), static_cast<double>(factor));
  finding.sameness = Sameness::changes_maths;
  finding.change =
      fmt::format("an optimizer step sees {} times the sequences, so an epoch has that many times fewer steps", factor);
  return finding;
}

std::optional<Finding> look_duplicate_forward(const Readings& readings) {
  const EpochShares shares(readings);
  const double forwards = std::max(readings.vital_signs.forwards_per_step, readings.stretch.forwards_per_step);
  const TrainingOptions& training = readings.job.training;
  // Recomputing activations, and a teacher's answers, are forward passes that were asked for.
  if (!shares.known() || forwards <= 1.05 || training.gradient_checkpointing > 0 || !training.teacher.empty())
    return {};
  const double forward = shares.of(forward_phases());
  Finding finding{.id = "duplicate_forward"};
  finding.evidence = {{"forward passes in a step", number_text(forwards), "1 is what training needs"},
                      {"forward passes", percent_text(forward), "of the time of an epoch"}};
  finding.cause = fmt::format(
      "Each sequence goes forward {} times in a step, and once is enough: at most {} of the time "
      "of an epoch.",
      number_text(forwards), percent_text(saved_share(forward, forwards)));
  finding.fix = advise("compute the loss from the outputs of the one forward pass");
  finding.predicted_gain = amdahl(forward, forwards);
  finding.sameness = Sameness::same_bits;
  return finding;
}

constexpr std::array kModelRules = {
    Rule{
        "precision", look_precision, "matrix products are slow, or bf16 was turned on and is slower than fp32",
        "this machine multiplies faster in another number format; which one depends on its instructions, so it is measured",
        "`training.precision`: the measured one; `auto` measures at each start"},
    Rule{
        "head_cost", look_head_cost, "a large vocabulary makes training slow although the layers are small",
        "every token is projected onto the whole vocabulary, and the softmax runs over it; the look-up of embeddings is "
        "not what costs",
        "a smaller `model.vocab_size` for a small corpus"},
    Rule{
        "attention_length", look_attention_length, "long sequences train far more slowly per token than short ones",
        "attention grows with the square of the length, and is a large share of the time here. Where it is not (2 % at 512 "
        "wide and 128 tokens), half the length gains 1.01x per token, and nothing is reported",
        "a shorter `training.max_length`, if the model need not see further"},
    Rule{"model_too_large", look_model_too_large,
         "the training loss goes to zero while the validation loss rises; or the memory is not enough",
         "the model has more parameters than the data can teach, or needs more memory than there is",
         "fewer layers, more data, a trained model to start from; of an encoder, a distilled one"},
    Rule{"frozen_recomputed", look_frozen_recomputed, "freezing layers saved the backward pass only",
         "the outputs of frozen layers are the same in every epoch and are computed every time",
         "`training.cache_frozen: true`, without `training.frozen_dropout`"},
    Rule{"optimizer_cost", look_optimizer_cost, "a step of a few tokens takes nearly as long as one of many",
         "the optimizer reads and writes every parameter in each step, however small the batch",
         "a larger `training.batch_size`, with the learning rates times the square root of the ratio"},
    Rule{
        "duplicate_forward", look_duplicate_forward, "a step takes much longer than a forward and a backward pass",
        "the forward pass runs more than once for each sequence, as where the loss is computed apart from the outputs; "
        "removing the second one gains 2x at most, 1.3x with a backward pass",
        "compute the loss from the outputs that are there"},
};

}  // namespace

std::span<const Rule> rules_of_model() { return kModelRules; }

}  // namespace brisk
