// Rules about what comes of the training: does it learn at all, does it still learn, and at a rate that suits it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text/plural.h"
#include "doctor/judge/compose.h"
#include "doctor/judge/rule_groups.h"

namespace brisk {

namespace {

using History = std::vector<std::pair<double, double>>;  // step, loss

constexpr double kNoImprovement = 0.005;  // of the loss
constexpr double kClearlyLower = 0.02;    // of the loss
constexpr double kFarRate = 3;            // times
constexpr size_t kRisingEvaluations = 3;

std::string loss_text(double loss) { return fmt::format("{:.3f}", loss); }

std::optional<Finding> look_not_learning(const Readings& readings) {
  const VitalSigns& signs = readings.vital_signs;
  if (!signs.measured) return {};
  Finding finding{.id = "not_learning", .is_quality = true};
  finding.sameness = Sameness::changes_maths;
  finding.change = "it learns";
  const auto names = [](const std::vector<std::string>& of) { return fmt::format("{}", fmt::join(of, ", ")); };
  if (!signs.loss_finite) {
    finding.evidence = {{"loss", "not finite", ""}};
    finding.cause = "The loss is not a finite number.";
    finding.fix = advise(
        "a lower training.learning_rate, training.precision bf16 or fp32 in place of fp16, and a look at "
        "the data");
  } else if (signs.tensors_with_gradient < signs.tensors) {
    finding.evidence = {{"tensors with a gradient", fmt::format("{} of {}", signs.tensors_with_gradient, signs.tensors),
                         "none: " + names(signs.without_gradient)}};
    finding.cause = fmt::format("{} that should be trained {} no gradient.",
                                plural(signs.tensors - signs.tensors_with_gradient, "tensor"),
                                signs.tensors - signs.tensors_with_gradient == 1 ? "gets" : "get");
    finding.fix = advise("a backward pass that reaches them, or freeze them on purpose");
  } else if (signs.tensors_changed < signs.tensors) {
    finding.evidence = {{"tensors that changed", fmt::format("{} of {}", signs.tensors_changed, signs.tensors),
                         "unchanged: " + names(signs.unchanged)}};
    finding.cause =
        fmt::format("{} did not change in an optimizer step.", plural(signs.tensors - signs.tensors_changed, "tensor"));
    finding.fix = advise("a learning rate above 0, and an optimizer step that gets the gradients");
  } else if (!signs.loss_falling) {
    finding.evidence = {{"loss", fmt::format("{} to {}", loss_text(signs.first_loss), loss_text(signs.last_loss)),
                         "from the first to the last measured step"}};
    finding.cause = fmt::format("The loss does not fall: {} in the first step that was measured, {} in the last.",
                                loss_text(signs.first_loss), loss_text(signs.last_loss));
    finding.fix = advise(
        "another training.learning_rate, and a look at the first examples: do their targets follow from "
        "them?");
  } else {
    return {};
  }
  return finding;
}

std::optional<Finding> look_loss_start(const Readings& readings) {
  const VitalSigns& signs = readings.vital_signs;
  const double expected = signs.expected_first_loss, first = signs.first_loss;
  if (!signs.measured || expected <= 0 || first < 0 || !std::isfinite(first)) return {};
  if (std::abs(first - expected) <= 0.1 + 0.2 * expected) return {};
  Finding finding{.id = "loss_start", .is_quality = true};
  finding.evidence = {
      {"first loss", loss_text(first), ""},
      {"loss of equal chances", loss_text(expected), "the logarithm of the number of tokens or classes"}};
  finding.cause = fmt::format("The first loss is {}, and a model that knows nothing has {}.", loss_text(first),
                              loss_text(expected));
  finding.fix =
      advise(first < expected ? "make sure that the targets are not among the inputs, and that most of them differ"
                              : "smaller initial weights, and a look at the targets of the first examples");
  finding.sameness = Sameness::changes_maths;
  finding.change = "another start";
  return finding;
}

double lowest(const History& history, size_t begin, size_t end) {
  double loss = INFINITY;
  for (size_t i = begin; i < end; ++i) loss = std::min(loss, history[i].second);
  return loss;
}

// Means of ten stretches: the loss of a single step says little.
History smoothed(const History& history) {
  constexpr size_t kStretches = 9;
  if (history.size() <= 3 * kStretches) return {};
  History means;
  for (size_t i = 0; i < kStretches; ++i) {
    const size_t begin = i * history.size() / kStretches, end = (i + 1) * history.size() / kStretches;
    double sum = 0;
    for (size_t j = begin; j < end; ++j) sum += history[j].second;
    means.emplace_back(history[end - 1].first, sum / static_cast<double>(end - begin));
  }
  return means;
}

// Of the last evaluation that is the best; nothing where the loss has not been rising since.
std::optional<size_t> best_before_rising(const HistoryReadings& history) {
  const History& validation = history.validation;
  if (validation.size() <= kRisingEvaluations) return {};
  const auto best = std::min_element(validation.begin(), validation.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  const auto index = static_cast<size_t>(best - validation.begin());
  if (validation.size() - 1 - index < kRisingEvaluations) return {};
  for (size_t i = index + 1; i < validation.size(); ++i) {
    if (i + kRisingEvaluations >= validation.size() && validation[i].second <= validation[i - 1].second) return {};
  }
  if (validation.back().second < best->second * (1 + kNoImprovement)) return {};
  return index;
}

// The mean training loss of the steps in (from, to]; negative: there are none.
double training_loss(const HistoryReadings& history, double from, double to) {
  double sum = 0, count = 0;
  for (const auto& [step, loss] : history.training) {
    if (step > from && step <= to) sum += loss, ++count;
  }
  return count > 0 ? sum / count : -1;
}

Fix stop_early(const Readings& readings, std::string advice) {
  const TrainingOptions& training = readings.job.training;
  if (training.early_stopping_patience > 0) return advise(std::move(advice));
  return set_key("training.early_stopping_patience", json_number(kRisingEvaluations), std::move(advice));
}

std::optional<Finding> look_overfitting(const Readings& readings) {
  const HistoryReadings& history = readings.history;
  const std::optional<size_t> best = best_before_rising(history);
  if (!best) return {};
  const auto& [step, loss] = history.validation[*best];
  const double end = history.validation.back().first;
  const double before = training_loss(history, 2 * step - end, step), after = training_loss(history, step, end);
  if (before < 0 || after < 0 || after >= before) return {};
  Finding finding{.id = "overfitting", .is_quality = true};
  finding.evidence = {
      {"lowest validation loss", loss_text(loss), fmt::format("at step {}", number_text(step))},
      {"last validation loss", loss_text(history.validation.back().second),
       fmt::format("at step {}", number_text(end))},
      {"training loss", fmt::format("{} to {}", loss_text(before), loss_text(after)), "on the average"}};
  finding.cause = fmt::format(
      "In the earlier run the validation loss rose from {} at step {} to {} while the training loss fell: {} of the steps "
      "made the model worse.",
      loss_text(loss), number_text(step), loss_text(history.validation.back().second), percent_text(1 - step / end));
  finding.fix = stop_early(readings, "more data, more model.dropout, or a smaller model");
  finding.sameness = Sameness::changes_maths;
  finding.change = "the run ends earlier";
  return finding;
}

std::optional<Finding> look_plateau(const Readings& readings) {
  if (look_overfitting(readings)) return {};
  const HistoryReadings& history = readings.history;
  const bool validated = history.validation.size() >= 6;
  const History losses = validated ? history.validation : smoothed(history.training);
  if (losses.size() < 6) return {};
  const size_t last_third = losses.size() - losses.size() / 3;
  const double before = lowest(losses, 0, last_third), after = lowest(losses, last_third, losses.size());
  if (!std::isfinite(before) || !std::isfinite(after) || before <= 0 || after < before * (1 - kNoImprovement))
    return {};
  const double step = losses[last_third - 1].first, end = losses.back().first;
  Finding finding{.id = "plateau", .is_quality = true};
  finding.evidence = {{"loss until two thirds of the run", loss_text(before),
                       fmt::format("{}, to step {}", validated ? "validation" : "training", number_text(step))},
                      {"loss in the last third", loss_text(after), fmt::format("to step {}", number_text(end))}};
  finding.cause =
      fmt::format("In the earlier run the loss went from {} to {} in the last third of the steps, less than {}.",
                  loss_text(before), loss_text(after), percent_text(kNoImprovement));
  finding.fix = stop_early(readings, "fewer training.num_epochs, more data, or a larger model");
  finding.sameness = Sameness::changes_maths;
  finding.change = "the run ends earlier";
  return finding;
}

std::optional<Finding> look_learning_rate(const Readings& readings) {
  const CurvePoint *own = nullptr, *best = nullptr;
  for (const CurvePoint& point : readings.rate_curve) {
    if (point.loss < 0 || !std::isfinite(point.loss) || point.x <= 0) continue;
    if (std::abs(point.x - 1) < 1e-6) own = &point;
    if (best == nullptr || point.loss < best->loss) best = &point;
  }
  if (own == nullptr || std::max(best->x, 1 / best->x) < kFarRate - 1e-6) return {};
  if (best->loss > own->loss * (1 - kClearlyLower)) return {};
  const TrainingOptions& training = readings.job.training;
  Finding finding{.id = "learning_rate", .is_quality = true};
  for (const CurvePoint& point : readings.rate_curve)
    finding.evidence.push_back({fmt::format("{:.3g} times the rate", point.x),
                                point.loss < 0 ? "diverged or not measured" : "loss " + loss_text(point.loss), ""});
  finding.cause =
      fmt::format("After a short sweep the loss is {} at {:.3g} times the learning rate, and {} at the job's.",
                  loss_text(best->loss), best->x, loss_text(own->loss));
  if (training.learning_rate > 0) {
    finding.fix = set_key("training.learning_rate", fmt::format("{:.4g}", training.learning_rate * best->x));
    scale_rates(*finding.fix, readings.job, best->x, "all learning rates are scaled by the same factor");
  } else {
    finding.fix = advise(fmt::format("{:.3g} times the learning rate", best->x));
  }
  finding.sameness = Sameness::changes_maths;
  finding.change = "another learning rate; a short sweep favours what is fast at the start";
  return finding;
}

constexpr std::array kResultRules = {
    Rule{
        "not_learning", look_not_learning, "the loss does not move, or is nan; answers are the same before and after",
        "the loss is not finite or does not fall, parameters do not change, or no gradient reaches them: everything else "
        "can wait",
        "the finding names the tensors; then the learning rate, the precision, and the first examples as the model sees "
        "them"},
    Rule{
        "loss_start", look_loss_start, "the first loss is far from ln V (of V tokens) or ln C (of C classes)",
        "a new model knows nothing, so its first loss is that of equal chances; below it, targets leak into the inputs, and "
        "above it, the initial weights are too large",
        "look at the first examples and their targets"},
    Rule{"overfitting", look_overfitting, "the training loss falls and the validation loss rises",
         "the model learns the training data by heart",
         "`training.early_stopping_patience`; more data, more `model.dropout`, a smaller model"},
    Rule{"plateau", look_plateau, "the loss has not moved for a third of the run",
         "the run is longer than the model and the data deserve",
         "`training.early_stopping_patience`, fewer epochs; more data or a larger model"},
    Rule{
        "learning_rate", look_learning_rate, "the loss falls very slowly, or jumps",
        "in a short measured sweep, a learning rate that is several times larger or smaller gives a clearly lower loss",
        "`training.learning_rate` by the factor that was measured"},
};

}  // namespace

std::span<const Rule> rules_of_result() { return kResultRules; }

}  // namespace brisk
