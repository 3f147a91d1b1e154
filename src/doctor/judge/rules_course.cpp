// Rules about what interrupts the steps of a run: loading, evaluations, logging, checkpoints, samples.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/log.h"
#include "base/text/plural.h"
#include "doctor/judge/compose.h"
#include "doctor/judge/rule_groups.h"
#include "doctor/judge/shares.h"

namespace brisk {

namespace {

constexpr double kDataWaitIsSmall = 0.03, kCourseIsSmall = 0.02;  // of the time
// What brisk does where a job does not say (docs/job.md): evaluations in a run and the most of its time that they may take,
// a checkpoint every so many seconds, a log line every so many steps.
constexpr double kUsualEvaluations = 10, kUsualEvaluationShare = 0.1, kUsualSaveSeconds = 300;
constexpr int64_t kUsualLoggingSteps = 10, kUsualSampleTokens = 64;

std::string share_of_epoch(double share) { return fmt::format("{} of the time of an epoch", percent_text(share)); }

// Loader threads that keep up with the steps. A job that waits has loaders that are busy all the time (or loads between the
// steps, with none).
struct Loaders {
  int64_t now, wanted;
  double waiting_left = 0;  // share of the present time that still waits

  Loaders(const Readings& readings, double waiting) : now(readings.job.training.num_workers) {
    const double work = now == 0 ? waiting : static_cast<double>(now), computing = std::max(1 - waiting, 0.05);
    wanted = std::clamp<int64_t>(static_cast<int64_t>(std::ceil(work / computing - 1e-9)), 1,
                                 std::max<int64_t>(readings.machine.cores, now));
    waiting_left = std::max(0.0, work / static_cast<double>(wanted) - computing);
  }
};

std::optional<Finding> look_data_loading(const Readings& readings) {
  const EpochShares shares(readings);
  const double waiting = shares.of_steps({Phase::data_wait}), share = shares.of({Phase::data_wait});
  if (!shares.known() || share <= kDataWaitIsSmall) return {};
  const Loaders loaders(readings, waiting);
  const std::string& file_system = readings.data.file_system;
  Finding finding{.id = "data_loading"};
  finding.evidence = {{"waiting for batches", percent_text(share), "of the time of an epoch"},
                      {"loader threads", number_text(static_cast<double>(loaders.now)), ""}};
  if (!file_system.empty()) finding.evidence.push_back({"file system of the tokens", file_system, "not a local disk"});
  if (readings.stretch.disk_wait_seconds > 0)
    finding.evidence.push_back({"waiting for a disk", format_duration(readings.stretch.disk_wait_seconds),
                                fmt::format("of {}", format_duration(readings.stretch.seconds))});
  const std::string loading = loaders.now == 0
                                  ? "which the training thread prepares itself"
                                  : "which " + plural(loaders.now, "loader thread") + " cannot prepare in time";
  finding.cause = fmt::format("Steps wait {} for batches, {}.", share_of_epoch(share), loading);
  const bool more_threads = loaders.wanted > loaders.now;
  const std::string advice = file_system.empty() ? "data on a faster disk"
                                                 : "data.cache_dir on a local disk: the tokens lie on " + file_system;
  finding.fix = more_threads ? set_key("training.num_workers", json_number(static_cast<double>(loaders.wanted)), advice)
                             : advise(advice);
  finding.predicted_gain = gain_of_saving(more_threads ? share * (1 - loaders.waiting_left / waiting) : share);
  finding.sameness = Sameness::same_bits;
  return finding;
}

std::optional<Finding> look_evaluation_cost(const Readings& readings) {
  const CourseReadings& course = readings.course;
  const TrainingOptions& training = readings.job.training;
  const EpochShares shares(readings);
  const double share = shares.of_course(course.evaluation_seconds, course.evaluations_per_epoch);
  if (share <= 0 || training.eval_steps < 0) return {};
  const double epochs = std::max(course.epochs, 1.0);
  const double training_seconds = (shares.seconds() - course.seconds_per_epoch()) * epochs;
  double usual =
      std::clamp(kUsualEvaluationShare * training_seconds / course.evaluation_seconds, 1.0, kUsualEvaluations);
  if (training.early_stopping_patience > 0) usual = epochs;
  const double fewer = std::min(usual / epochs, course.evaluations_per_epoch);
  Finding finding{.id = "evaluation_cost"};
  finding.evidence = {{"evaluations", percent_text(share), "of the time of an epoch"},
                      {"one evaluation", format_duration(course.evaluation_seconds), ""},
                      {"evaluations in an epoch", number_text(course.evaluations_per_epoch),
                       fmt::format("by default {}", number_text(fewer))}};
  finding.cause = fmt::format("{} evaluations of {} in an epoch take {}.", number_text(course.evaluations_per_epoch),
                              format_duration(course.evaluation_seconds), share_of_epoch(share));
  finding.fix = set_key("training.eval_steps", kJsonAuto, "the best model is chosen among fewer evaluations then");
  finding.predicted_gain = gain_of_saving(share * (1 - fewer / course.evaluations_per_epoch));
  finding.sameness = Sameness::same_bits;
  if (training.early_stopping_patience > 0) {
    finding.sameness = Sameness::changes_maths;
    finding.change = "the patience of early stopping counts evaluations, and there are fewer";
  }
  return finding;
}

std::optional<Finding> look_logging_cost(const Readings& readings) {
  const CourseReadings& course = readings.course;
  const TrainingOptions& training = readings.job.training;
  const EpochShares shares(readings);
  double share = shares.of_course(course.logging_seconds, course.loggings_per_epoch);
  if (share <= 0) share = shares.of({Phase::logging});
  if (share <= kCourseIsSmall) return {};
  Finding finding{.id = "logging_cost"};
  finding.evidence = {{"logging", percent_text(share), "of the time of an epoch"}};
  if (course.logging_seconds > 0)
    finding.evidence.push_back({"one line", format_duration(course.logging_seconds), "with what is written beside it"});
  double saved = share;
  if (training.histogram_steps > 0) {  // they cost far more than a line
    finding.fix = set_key("training.histogram_steps", "0");
    finding.cause = fmt::format("Histograms of all parameters every {} and the log take {}.",
                                plural(training.histogram_steps, "step"), share_of_epoch(share));
  } else if (training.logging_steps > 0 && training.logging_steps < kUsualLoggingSteps) {
    finding.fix = set_key("training.logging_steps", kJsonAuto);
    saved *= 1 - static_cast<double>(training.logging_steps) / static_cast<double>(kUsualLoggingSteps);
    finding.cause = fmt::format("A line is logged every {}, which takes {}.", plural(training.logging_steps, "step"),
                                share_of_epoch(share));
  } else {
    finding.fix =
        training.tensorboard ? set_key("training.tensorboard", "false") : advise("an output folder on a faster disk");
    finding.cause = fmt::format("Writing the log takes {}.", share_of_epoch(share));
  }
  finding.predicted_gain = gain_of_saving(saved);
  finding.sameness = Sameness::same_bits;
  return finding;
}

std::optional<Finding> look_saving_cost(const Readings& readings) {
  const CourseReadings& course = readings.course;
  const TrainingOptions& training = readings.job.training;
  const EpochShares shares(readings);
  const double share = shares.of_course(course.save_seconds, course.saves_per_epoch);
  if (share <= kCourseIsSmall) return {};
  Finding finding{.id = "saving_cost"};
  finding.evidence = {{"saving", percent_text(share), "of the time of an epoch"},
                      {"one checkpoint", format_duration(course.save_seconds), "in which the steps wait"},
                      {"checkpoints in an epoch", number_text(course.saves_per_epoch), ""}};
  finding.cause =
      fmt::format("{} checkpoints in an epoch keep the steps waiting for {} each: {}.",
                  number_text(course.saves_per_epoch), format_duration(course.save_seconds), share_of_epoch(share));
  const double usual =
      std::min(course.saves_per_epoch, (shares.seconds() - course.seconds_per_epoch()) / kUsualSaveSeconds);
  double saved = share * (1 - usual / course.saves_per_epoch);
  if (training.save_steps >= 0) {
    finding.fix = set_key("training.save_steps", kJsonAuto);
  } else if (training.save_minutes > 0 && 60 * training.save_minutes < kUsualSaveSeconds) {
    finding.fix = set_key("training.save_minutes", json_number(kUsualSaveSeconds / 60));
  } else {
    finding.fix =
        advise("an output folder on a faster disk, and memory for the copy that is saved while training goes on");
    saved = share;
  }
  finding.predicted_gain = gain_of_saving(saved);
  finding.sameness = Sameness::same_bits;
  return finding;
}

std::optional<Finding> look_sampling_cost(const Readings& readings) {
  const CourseReadings& course = readings.course;
  const TrainingOptions& training = readings.job.training;
  const double share = EpochShares(readings).of_course(course.sample_seconds, course.samples_per_epoch);
  if (share <= kCourseIsSmall) return {};
  Finding finding{.id = "sampling_cost"};
  finding.evidence = {
      {"samples", percent_text(share), "of the time of an epoch"},
      {"one time", format_duration(course.sample_seconds), fmt::format("{} tokens of each", training.sample_tokens)},
      {"times in an epoch", number_text(course.samples_per_epoch), ""}};
  finding.cause =
      fmt::format("Text is sampled {} times in an epoch, {} each: {}.", number_text(course.samples_per_epoch),
                  format_duration(course.sample_seconds), share_of_epoch(share));
  double saved = share;
  if (training.sample_prompts.empty() || training.sample_tokens > kUsualSampleTokens) {
    finding.fix = set_key("training.sample_tokens", kJsonAuto);
    if (!training.sample_prompts.empty())
      saved *= 1 - static_cast<double>(kUsualSampleTokens) / static_cast<double>(training.sample_tokens);
  } else {
    finding.fix = set_key("training.sample_prompts", "[]");
    // Given beside the prompts, it would sample from an empty text without them.
    if (training.sample_tokens > 0) finding.fix->also = {{"training.sample_tokens", kJsonAuto}};
  }
  finding.predicted_gain = gain_of_saving(saved);
  finding.sameness = Sameness::same_bits;
  return finding;
}

constexpr std::array kCourseRules = {
    Rule{
        "data_loading", look_data_loading,
        "the GPU's load swings between 0 and 100 %, or the cores are idle between steps; a slow disk or a network disk",
        "steps wait for the loader's next batch",
        "more loader threads (`training.num_workers`); tokens on a local disk (`data.cache_dir`)"},
    Rule{"evaluation_cost", look_evaluation_cost,
         "an epoch takes much longer than its steps; the progress stands still again and again",
         "evaluations take a large share of the time",
         "`training.eval_steps: \"auto\"`: about ten evaluations in a run, at most a tenth of its time"},
    Rule{"logging_cost", look_logging_cost, "training became slower when more was logged",
         "lines, event files and histograms are written too often",
         "`training.logging_steps: \"auto\"`, `training.histogram_steps: 0`"},
    Rule{"saving_cost", look_saving_cost, "steps pause for seconds, and the disk is busy then",
         "checkpoints are saved more often than anybody needs to go back",
         "`training.save_steps: \"auto\"`: a checkpoint every five minutes (`training.save_minutes`)"},
    Rule{"sampling_cost", look_sampling_cost, "evaluations take much longer with sample prompts than without",
         "sampling goes token by token and uses little of the machine",
         "fewer or shorter samples (`training.sample_tokens`)"},
};

}  // namespace

std::span<const Rule> rules_of_course() { return kCourseRules; }

}  // namespace brisk
