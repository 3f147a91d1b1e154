#include "train/run/plan/cadence.h"

#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "base/runtime.h"
#include "base/terminal/terminal_log.h"
#include "job/job.h"
#include "support/sample_text.h"
#include "support/scratch_folder.h"
#include "train/run/trainer.h"

namespace brisk {
namespace {

EvaluationCosts costs_of(int64_t epochs, int64_t steps_per_epoch, double validation_share) {
  return {.total_steps = epochs * steps_per_epoch,
          .steps_per_epoch = steps_per_epoch,
          .training_rows = 1000.0 * static_cast<double>(epochs),
          .validation_rows = 1000 * validation_share};
}

std::vector<int64_t> steps_of(const EvaluationPlan& plan) {
  std::vector<int64_t> steps;
  for (int64_t step = 1; step < plan.total_steps; ++step) {
    if (plan.is_due(step)) steps.push_back(step);
  }
  steps.push_back(plan.total_steps);  // always
  EXPECT_EQ(std::ssize(steps), plan.count());
  return steps;
}

TEST(EvaluationPlan, SpreadsAboutTenOverARun) {
  EXPECT_EQ(steps_of(plan_evaluations(costs_of(1, 100, 0.01))),
            (std::vector<int64_t>{10, 20, 30, 40, 50, 60, 70, 80, 90, 100}));
  EXPECT_EQ(steps_of(plan_evaluations(costs_of(2, 10, 0.01))),
            (std::vector<int64_t>{2, 4, 6, 8, 10, 12, 14, 16, 18, 20}));
}

TEST(EvaluationPlan, HasTheEndOfEachEpochWhereThereAreFew) {
  const std::vector<int64_t> steps = steps_of(plan_evaluations(costs_of(3, 100, 0.01)));
  EXPECT_EQ(steps, (std::vector<int64_t>{34, 67, 100, 134, 167, 200, 234, 267, 300}));
}

TEST(EvaluationPlan, HasTheEndOfSomeEpochsWhereThereAreMany) {
  EXPECT_EQ(steps_of(plan_evaluations(costs_of(200, 2, 0.05))),
            (std::vector<int64_t>{40, 80, 120, 160, 200, 240, 280, 320, 360, 400}));
}

TEST(EvaluationPlan, IsShorterWhereAnEvaluationCostsMuch) {
  // A twentieth of the text takes a sixtieth of an epoch: six of them are a tenth.
  EXPECT_EQ(steps_of(plan_evaluations(costs_of(1, 60, 0.05))), (std::vector<int64_t>{10, 20, 30, 40, 50, 60}));
  EXPECT_EQ(plan_evaluations(costs_of(1, 100, 0.5)).count(), 1);
  // As much text to evaluate as to train on: after each epoch, which is a third; more is not asked for.
  EXPECT_EQ(steps_of(plan_evaluations(costs_of(3, 100, 1.0))), (std::vector<int64_t>{100, 200, 300}));
  EXPECT_EQ(plan_evaluations(costs_of(4, 100, 4.0)).count(), 1);
}

TEST(EvaluationPlan, IsAfterEachEpochWherePatienceIsCountedInEvaluations) {
  EvaluationCosts costs = costs_of(30, 10, 4.0);
  costs.every_epoch = true;
  EXPECT_EQ(plan_evaluations(costs).count(), 30);
  costs = costs_of(1, 100, 0.01);
  costs.every_epoch = true;
  EXPECT_EQ(plan_evaluations(costs).count(), 10) << "one epoch has nothing to be patient with";
}

TEST(EvaluationPlan, OfARunThatEndsWithinAnEpochHasNoneJustBeforeTheLast) {
  EvaluationCosts costs = costs_of(1, 1000, 0.001);
  costs.total_steps = 100;
  EXPECT_EQ(steps_of(plan_evaluations(costs)), (std::vector<int64_t>{10, 20, 30, 40, 50, 60, 70, 80, 90, 100}));
  costs.total_steps = 1;
  EXPECT_EQ(steps_of(plan_evaluations(costs)), (std::vector<int64_t>{1}));
  costs.total_steps = 103;
  for (const int64_t step : steps_of(plan_evaluations(costs))) EXPECT_TRUE(step == 103 || step <= 98) << step;
}

TEST(EvaluationPlan, OfATimeBoxTakesATenthOfIt) {
  EXPECT_EQ(evaluations_in(600, 1), 10);
  EXPECT_EQ(evaluations_in(600, 20), 3);
  EXPECT_EQ(evaluations_in(60, 30), 1);
}

TEST(SaveSchedule, IsTheClocksUntilItIsKnownInSteps) {
  const SaveOptions options{.minutes = 5, .steps_per_epoch = 1000};
  EXPECT_FALSE(save_is_due({}, options, 10, false, 299));
  EXPECT_TRUE(save_is_due({}, options, 10, false, 300));
  EXPECT_FALSE(save_is_due({}, options, 10, true, 100));
  EXPECT_TRUE(save_is_due({}, options, 10, true, 150));
}

TEST(SaveSchedule, IsInStepsAfterTheFirstSave) {
  const SaveOptions options{.minutes = 5, .steps_per_epoch = 100000};
  const SaveSchedule schedule = next_save(options, 700, 600, 300);
  EXPECT_EQ(schedule.interval, 600);
  EXPECT_EQ(schedule.next, 1300);
  EXPECT_FALSE(save_is_due(schedule, options, 1299, false, 500)) << "the clock is only asked about twice the time";
  EXPECT_TRUE(save_is_due(schedule, options, 1299, false, 600));
  EXPECT_TRUE(save_is_due(schedule, options, 1300, false, 1));
  EXPECT_EQ(next_save(options, 8, 1, 1000).next, 9) << "a step that takes longer than the interval";
}

TEST(SaveSchedule, LeavesOutTheEndsOfShortEpochs) {
  SaveOptions options{.minutes = 5, .steps_per_epoch = 10};
  EXPECT_FALSE(save_is_due({.interval = 600, .next = 600}, options, 10, true, 3));
  options.steps_per_epoch = 300;
  EXPECT_TRUE(save_is_due({.interval = 600, .next = 600}, options, 300, true, 3));
  options.after_epochs = false;
  EXPECT_FALSE(save_is_due({.interval = 600, .next = 600}, options, 300, true, 3));
}

TEST(SaveSchedule, WithoutAClockIsAfterEachEpoch) {
  const SaveOptions options{.minutes = 0, .steps_per_epoch = 10};
  EXPECT_FALSE(save_is_due({}, options, 9, false, 1e6));
  EXPECT_TRUE(save_is_due({}, options, 10, true, 0));
  EXPECT_EQ(next_save(options, 10, 10, 5).interval, 0);
}

TEST(Cadence, OfManyShortEpochsIsAFewEvaluationsAndCheckpointsAlsoWhenInterrupted) {
  const test::ScratchFolder folder;
  folder.write("text.txt", testing::prose(2000, 7));
  const auto job = [&](const std::string& output) {
    Job job = job_from_json_text(R"({
      "device": "cpu", "model": {"d_model": 32, "num_layers": 1, "num_heads": 2, "vocab_size": 300},
      "training": {"num_epochs": 40, "batch_size": 64, "max_length": 32, "threads": 1, "precision": "fp32"}})",
                                 "job.json");
    job.data.train = {DataSource(folder / "text.txt")};
    job.data.cache_dir = folder / "cache";
    job.output = folder / output;
    resolve_defaults(job);
    return job;
  };
  const auto evaluated_steps = [&](const std::string& run) {
    std::vector<int64_t> steps;
    std::istringstream lines(test::contents_of(folder / run + "/metrics.jsonl"));
    for (std::string line; std::getline(lines, line);) {
      const auto json = nlohmann::json::parse(line);
      if (json.contains("validation_loss")) steps.push_back(json["step"]);
    }
    return steps;
  };
  const TrainOutcome whole = train(job("whole"), {});
  const std::vector<int64_t> steps = evaluated_steps("whole");
  EXPECT_EQ(steps.size(), 10u);
  EXPECT_LE(whole.summary.checkpoints_saved, 10) << "after the best evaluations, and at the end";
  {
    Runtime runtime({.log = std::make_shared<TerminalLog>()});
    const RuntimeScope scope(runtime);
    const auto cancel = [&](const Progress& progress) {
      if (progress.step == steps[4] + 3) runtime.cancel();
    };
    EXPECT_TRUE(train(job("stopped"), {.on_step = cancel}).interrupted);
  }
  train(job("stopped"), {.resume = true});
  EXPECT_EQ(evaluated_steps("stopped"), steps);
}

}  // namespace
}  // namespace brisk
