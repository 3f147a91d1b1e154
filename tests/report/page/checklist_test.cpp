// The checklist that a run's page ends with, and bars with whiskers.
#include "report/page/checklist.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "report/page/bar_chart.h"
#include "report/page/report_page.h"

namespace brisk {
namespace {

RunRecord finished_run() {
  RunRecord run;
  run.name = "bible";
  run.status = "finished";
  run.step = run.total_steps = 1250;
  run.totals.steps_per_epoch = 625;
  for (int step = 1; step <= 40; ++step) {
    StepPoint point;
    point.step = 10 * step;
    point.metrics = {{"loss", 9.0 - 0.1 * step}};
    run.steps.push_back(point);
  }
  run.evaluations.push_back({.step = 1000, .metrics = {standard_metric("loss", 5.25)}});
  run.metrics = {standard_metric("loss")};
  run.samples = {{10, "In", "In in in", false}, {1000, "In", "In the beginning", true}};
  run.peak_memory_bytes = 1 << 30;
  run.processes.emplace_back().memory_bytes = 16.0 * (1 << 30);
  run.rollbacks = run.skipped_updates = 0;
  return run;
}

std::string numbers_of(const RunRecord& run, const std::string& what) {
  const std::vector<Check> checks = run_checks(run);
  const auto found = std::find_if(checks.begin(), checks.end(), [&](const Check& check) { return check.what == what; });
  return found != checks.end() ? mark_text(found->mark) + " " + found->numbers : std::string();
}

TEST(RunChecks, OfARunThatWentWellAreAllTicks) {
  const RunRecord run = finished_run();
  EXPECT_EQ(numbers_of(run, "all epochs complete"), "✓ 1,250 of 1,250 steps, 2.00 epochs");
  EXPECT_EQ(numbers_of(run, "the training loss fell"), "✓ from 8.9000 to 5.4500, the mean of the last 10 logged");
  EXPECT_EQ(numbers_of(run, "the samples changed"), "✓ 1 of 1 prompt, step 10 against step 1,000");
  EXPECT_EQ(numbers_of(run, "nothing out of memory"), "✓ peak 1.00 GiB of the process, 16.0 GiB in the machine");
  EXPECT_EQ(numbers_of(run, "no divergence, no rollback"), "✓ 0 rollbacks, 0 updates skipped");
  EXPECT_EQ(numbers_of(run, "a best model was chosen"), "✓ validation loss 5.2500 at step 1,000");
  EXPECT_EQ(numbers_of(run, "the GPU had work"), "") << "it ran on the CPU";
}

TEST(RunChecks, CrossWhatWentWrong) {
  RunRecord run = finished_run();
  run.status = "diverged";
  run.diverged_at = 40;
  run.step = 40;
  run.rollbacks = 3;
  run.skipped_updates = 12;
  run.samples[1].text = run.samples[0].text;
  for (StepPoint& point : run.steps) point.metrics = {{"loss", 3.0 + 0.01 * point.step}};
  run.device = "cuda:0";
  run.gpu_busy_share = 0.3;
  run.gpu_memory_used_bytes = 2.0 * (1 << 30);
  EXPECT_EQ(numbers_of(run, "all epochs complete"), "✗ 40 of 1,250 steps, 0.06 epochs: diverged at step 40");
  EXPECT_EQ(numbers_of(run, "the training loss fell").substr(0, 3), "✗");
  EXPECT_EQ(numbers_of(run, "the samples changed").substr(0, 3), "✗");
  EXPECT_EQ(numbers_of(run, "no divergence, no rollback"), "✗ diverged at step 40, 3 rollbacks, 12 updates skipped");
  EXPECT_EQ(numbers_of(run, "the GPU had work"), "✗ cuda:0: 30.0 % of the time, at most 2.00 GiB of its memory used");
}

TEST(RunChecks, NameTheGpuOfEveryRank) {
  RunRecord run = finished_run();
  run.device = "cuda:0";
  run.gpu_busy_share = 0.9;
  run.rank_gpus = {{0, 0.9, 2.0 * (1 << 30), 61}, {1, 0.3, 1.0 * (1 << 30), 48}};
  EXPECT_EQ(
      numbers_of(run, "the GPUs of all ranks had work"),
      "✗ rank 0: 90.0 % of the time, at most 2.00 GiB and 61 C; rank 1: 30.0 % of the time, at most 1.00 GiB and 48 C");
  EXPECT_EQ(numbers_of(run, "the GPU had work"), "");
  run.rank_gpus[1].busy_share = 0.85;
  EXPECT_EQ(numbers_of(run, "the GPUs of all ranks had work").substr(0, 3), "✓");
}

TEST(RunChecks, SayWhatIsNotKnown) {
  RunRecord run;
  run.status = "unfinished";
  for (const Check& check : run_checks(run)) {
    if (check.what == "all epochs complete") continue;
    EXPECT_EQ(mark_text(check.mark), "–") << check.what;
    EXPECT_EQ(check.numbers.find("nan"), std::string::npos) << check.numbers;
  }
  run.status = "imported";
  EXPECT_TRUE(run_checks(run).empty()) << "nothing was trained here";
}

TEST(RunChecks, EndThePage) {
  const std::string page = report_page(finished_run());
  const size_t checklist = page.find("<h2>Checklist</h2>");
  ASSERT_NE(checklist, std::string::npos);
  EXPECT_GT(checklist, page.find("<h2>Machine</h2>"));
  EXPECT_NE(page.find("✓", checklist), std::string::npos);
}

TEST(Checklist, EscapesWhatItShows) {
  const std::string markup = checklist_html({check("<b>", false, "<i>")}).markup();
  EXPECT_EQ(markup.find("<b><b>"), std::string::npos);
  EXPECT_NE(markup.find("&lt;b&gt;"), std::string::npos);
  EXPECT_NE(markup.find("&lt;i&gt;"), std::string::npos);
}

TEST(BarChart, IsAsLongAsTheLongestWhisker) {
  const std::string markup =
      bar_chart_html({{.name = "a", .value = 50, .text = "50"},
                      {.name = "<b>", .value = 80, .low = 70, .high = 100, .text = "80", .pale = true}})
          .markup();
  EXPECT_NE(markup.find("width:50.00%"), std::string::npos) << markup;
  EXPECT_NE(markup.find("left:70.00%;width:30.00%"), std::string::npos) << markup;
  EXPECT_NE(markup.find("class=\"of pale\""), std::string::npos);
  EXPECT_NE(markup.find("&lt;b&gt;"), std::string::npos);
}

TEST(BarChart, OfNoNumberHasNoBar) {
  const std::string markup =
      bar_chart_html({{.name = "a", .value = kUnknown, .text = "–"}, {.name = "b", .value = 0, .text = "0"}}).markup();
  EXPECT_EQ(markup.find("<i"), std::string::npos) << markup;
  EXPECT_EQ(markup.find("nan"), std::string::npos) << markup;
}

}  // namespace
}  // namespace brisk
