#include "train/run/run_health.h"

#include <fmt/format.h>

#include <cmath>

#include "base/text/plural.h"
#include "base/text/printable.h"
#include "job/job_conditions.h"
#include "job/job_task.h"

namespace brisk {

namespace {

// The class that all examples were given, where there was another one to give; else nothing.
std::optional<int64_t> only_prediction(const ClassScores& scores) {
  std::optional<int64_t> only;
  int64_t classes = 0;  // that the examples have
  for (int64_t i = 0; i < scores.classes(); ++i) {
    const ClassScores::Score of_class = scores.of_class(i);
    classes += of_class.examples > 0;
    if (of_class.predictions == 0) continue;
    if (only) return std::nullopt;
    only = i;
  }
  return classes > 1 ? only : std::nullopt;
}

// The loss of a model that gives all tokens, or all classes, the same probability.
struct Guess {
  double loss = 0;
  std::string text;  // "ln 8192"
};

Guess guess_of(const RunPlan& plan) {
  const bool tokens = traits_of_task(plan.job.task).predicts_tokens;
  const int64_t choices = tokens ? plan.job.model.vocab_size : plan.data.labels.count();
  if (choices < 2) return {std::nan(""), ""};
  return {std::log(static_cast<double>(choices)),
          fmt::format("ln {} = {:.2f}, that of a guess among {}", choices, std::log(static_cast<double>(choices)),
                      plural(choices, tokens ? "token" : "class", tokens ? "" : "classes"))};
}

// Where the best model is kept, and is a better one.
std::string kept_text(const RunPlan& plan, const RunSummary& summary, double loss) {
  const auto& best = summary.best_evaluation;
  if (!plan.job.training.load_best_model_at_end || !best) return "";
  if (std::isfinite(loss) && !(best->metrics.value("loss") < loss)) return "";
  return fmt::format("; the model that is kept is that of step {}, with a loss of {:.4f}", best->step,
                     best->metrics.value("loss"));
}

}  // namespace

std::string stability_advice(const Job& job) {
  const TrainingOptions& training = job.training;
  std::string advice = fmt::format("lower training.learning_rate (now {:g})", training.learning_rate);
  if (training.optimizer == "muon" && training.lora_rank == 0)
    advice += fmt::format(" and training.muon_learning_rate (now {:g})", training.muon_learning_rate);
  if (training.max_grad_norm == 0) advice += ", set training.max_grad_norm to 1 (now 0: no clipping)";
  if (training.max_grad_norm > 1)
    advice += fmt::format(", set training.max_grad_norm to 1 (now {:g})", training.max_grad_norm);
  return advice + (training.warmup_steps >= 0
                       ? fmt::format(", or raise training.warmup_steps (now {})", training.warmup_steps)
                       : fmt::format(", or raise training.warmup_ratio (now {:g})", training.warmup_ratio));
}

// For a model that learned nothing: one whose rate was too high looks like one whose rate was too low, and the default
// tells which is likely.
std::string learning_advice(const Job& job) {
  constexpr double kFar = 1.5;
  const double rate = job.training.learning_rate, usual = encoder_learning_rate(job);
  if (usual <= 0 || rate > kFar * usual) return stability_advice(job) + ", or train for longer";
  if (rate * kFar > usual)
    return fmt::format("train for longer, or with another training.learning_rate (now {:g})", rate);
  return fmt::format(
      "raise training.learning_rate (now {:g}; {:.2g} is the default of such a job), or train for longer", rate, usual);
}

std::vector<std::string> health_warnings(const RunPlan& plan, const RunSummary& summary,
                                         const std::optional<ClassScores>& scores) {
  std::vector<std::string> warnings;
  if (plan.job.model.reference) warnings.emplace_back(ModelOptions::kNotALanguageModel);
  const auto& evaluation = summary.last_evaluation;
  const auto& step = summary.last_step;
  const bool validated = evaluation && evaluation->metrics.find("loss") != nullptr;
  if (validated || step) {
    const double loss = validated ? evaluation->metrics.value("loss") : step->loss();
    const int64_t at = validated ? evaluation->step : step->step;
    const char* kind = validated ? "validation" : "training";
    const Guess guess = guess_of(plan);
    if (!std::isfinite(loss)) {
      warnings.push_back(fmt::format("the {} loss of step {} is not finite: the model is of no use; {}{}", kind, at,
                                     stability_advice(plan.job), kept_text(plan, summary, loss)));
    } else if (constexpr double kMargin = 1.02; loss > guess.loss && loss < kMargin * guess.loss) {
      warnings.push_back(fmt::format("the {} loss of step {}, {:.4f}, is no better than {}: nothing was learned; {}{}",
                                     kind, at, loss, guess.text, learning_advice(plan.job),
                                     kept_text(plan, summary, loss)));
    } else if (loss > guess.loss) {
      warnings.push_back(
          fmt::format("the {} loss of step {}, {:.4f}, is above {}: training did more harm than good; {}{}", kind, at,
                      loss, guess.text, stability_advice(plan.job), kept_text(plan, summary, loss)));
    }
  }
  if (scores) {
    if (const auto only = only_prediction(*scores)) {
      const std::string& name = plan.data.labels.names()[static_cast<size_t>(*only)];
      warnings.push_back(fmt::format(
          "the model predicts one class only: at step {} all {} were named \"{}\", {:.1f} % of which are; {}",
          evaluation ? evaluation->step : 0, plural(scores->count(), "validation text"), printable(name),
          100 * scores->accuracy(), learning_advice(plan.job)));
    }
  }
  return warnings;
}

}  // namespace brisk
