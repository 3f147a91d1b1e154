// A time box on a simulated clock: steps, evaluations and saves take the seconds that a test says.
#include "train/run/plan/time_box.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

namespace brisk {
namespace {

TimeBoxOptions options_of(double seconds) {
  TimeBoxOptions options;
  options.seconds = seconds;
  options.schedule = {.kind = ScheduleKind::linear,
                      .rate = 1,
                      .warmup_steps = TimeBox::kScheduleLength / 10,
                      .total_steps = TimeBox::kScheduleLength};
  options.step_seconds = 1;
  options.save_seconds = options.exposed_save_seconds = 1;
  options.evaluation_steps = 2;
  return options;
}

struct Simulated {
  std::vector<double> rates, progress;
  double seconds = 0;  // when all was done, the last evaluation and checkpoint included
};

Simulated simulate(TimeBoxOptions options, const std::function<double(int64_t)>& step_seconds,
                   double evaluation_seconds, double save_seconds, double clock = 0, double progress = 0) {
  Simulated run;
  TimeBox box(options, progress);
  run.seconds = clock;
  for (int64_t step = 1; !box.is_over(); ++step) {
    run.rates.push_back(box.rate(step, run.seconds));
    run.seconds += step_seconds(step);
    box.step_took(step_seconds(step));
    const bool last = box.advance(run.seconds);
    run.progress.push_back(box.progress());
    if (last || (options.evaluate_every > 0 && step % options.evaluate_every == 0)) {
      run.seconds += evaluation_seconds;
      box.evaluation_took(evaluation_seconds);
    }
    if (last || (options.save_every > 0 && step % options.save_every == 0)) {
      run.seconds += save_seconds;
      box.save_took(save_seconds, save_seconds);
    }
    if (run.rates.size() > 1000000) break;
  }
  return run;
}

TEST(TimeBox, LeavesOutAnEvaluationRightBeforeTheLastOne) {
  TimeBoxOptions options = options_of(100);  // an evaluation takes as long as two steps, a checkpoint as one
  options.evaluate_every = 20;
  const TimeBox box(options, 0.5);
  EXPECT_FALSE(box.ends_soon(60)) << "35 steps are left after an evaluation here";
  EXPECT_FALSE(box.ends_soon(88)) << "7 of them";
  EXPECT_TRUE(box.ends_soon(92)) << "3 of them: the last evaluation is the next";
  EXPECT_TRUE(box.ends_soon(99));
}

void expect_whole_schedule(const Simulated& run) {
  ASSERT_GT(run.rates.size(), 20u);
  EXPECT_LT(run.rates.front(), 0.2);
  EXPECT_GT(*std::max_element(run.rates.begin(), run.rates.end()), 0.95);
  EXPECT_LT(run.rates.back(), 0.1);
  EXPECT_GT(run.rates.back(), 0);
  EXPECT_EQ(run.progress.back(), 1);
  for (size_t i = 1; i < run.progress.size(); ++i) ASSERT_GT(run.progress[i], run.progress[i - 1]);
}

TEST(TimeBox, EndsOnTimeWithItsScheduleComplete) {
  const Simulated run = simulate(
      options_of(100), [](int64_t) { return 0.5; }, 3, 2);
  EXPECT_NEAR(run.seconds, 100, 5);  // the first evaluation is the last one: its length was a guess
  EXPECT_NEAR(static_cast<double>(run.rates.size()), 190, 10);
  expect_whole_schedule(run);
}

TEST(TimeBox, MakesRoomForEvaluationsAndCheckpointsOnTheWay) {
  TimeBoxOptions options = options_of(100);
  options.evaluate_every = 20;
  options.save_every = 30;
  const Simulated run = simulate(
      options, [](int64_t) { return 0.5; }, 3, 2);
  EXPECT_NEAR(run.seconds, 100, 2);
  expect_whole_schedule(run);
}

TEST(TimeBox, FollowsAMachineThatBecomesSlowerOrFaster) {
  for (const double factor : {0.3, 3.0}) {
    TimeBoxOptions options = options_of(200);
    options.evaluate_every = options.save_every = 25;
    const Simulated run = simulate(
        options, [&](int64_t step) { return step < 100 ? 0.5 : 0.5 * factor; }, 1, 0.5);
    EXPECT_NEAR(run.seconds, 200, 4) << factor;
    expect_whole_schedule(run);
  }
}

TEST(TimeBox, DoesNotTrustItsFirstGuessOrItsFirstStep) {
  for (const double guess : {0.001, 1000.0}) {
    TimeBoxOptions options = options_of(60);
    options.step_seconds = guess;
    options.evaluation_steps = 0.1;
    const Simulated run = simulate(
        options, [](int64_t step) { return step == 1 ? 2.0 : 0.2; }, 0.1, 0.1);
    EXPECT_NEAR(run.seconds, 60, 3) << guess;
    EXPECT_GT(run.rates.size(), 200u) << guess;
    // One step took much, and is a small part of the schedule for all that.
    EXPECT_LT(run.progress[0], 0.1) << guess;
  }
}

TEST(TimeBox, GoesOnWithTheProgressAndTheTimeThatAreLeft) {
  TimeBoxOptions options = options_of(100);
  const Simulated whole = simulate(
      options, [](int64_t) { return 0.5; }, 1, 1);
  // Killed in the middle, started again after 10 s of start-up.
  const Simulated rest = simulate(
      options, [](int64_t) { return 0.5; }, 1, 1, 60, 0.5);
  EXPECT_NEAR(rest.seconds, 100, 3);
  EXPECT_NEAR(rest.rates[1], (1 - 0.5) / (1 - 0.1), 0.02);  // linear, from where it stood
  EXPECT_LT(rest.rates.size(), whole.rates.size() / 2);
}

TEST(TimeBox, IsOverOnceItWasOver) {
  TimeBox box(options_of(100), 1);
  EXPECT_TRUE(box.is_over());
  EXPECT_EQ(box.steps_left(0), 0);
}

TEST(TimeBox, TakesOneStepAtLeast) {
  const Simulated run = simulate(
      options_of(10), [](int64_t) { return 5.0; }, 1, 1, 50, 0.3);
  EXPECT_EQ(run.rates.size(), 1u);
}

TEST(TimeBox, WarmsUpInStepsWhereTheJobCountsThem) {
  TimeBoxOptions options = options_of(100);
  options.warmup_steps = 10;
  options.schedule.warmup_steps = 0;
  const Simulated run = simulate(
      options, [](int64_t) { return 0.5; }, 1, 1);
  for (int64_t step = 1; step <= 10; ++step) EXPECT_DOUBLE_EQ(run.rates[static_cast<size_t>(step - 1)], 0.1 * step);
  EXPECT_NEAR(run.rates[10], 0.95, 0.03);
}

}  // namespace
}  // namespace brisk
