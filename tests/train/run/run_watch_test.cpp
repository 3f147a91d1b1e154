// What RunWatch writes when a run goes back to an earlier checkpoint; the rest is tested with the whole program.
#include "train/run/run_watch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "report/tensorboard/record.h"
#include "report/tensorboard/wire.h"
#include "support/manual_clock.h"
#include "support/scratch_folder.h"

namespace brisk {
namespace {

using nlohmann::json;
using test::contents_of;
using test::ScratchFolder;

Job small_job(const ScratchFolder& folder) {
  std::string text;
  for (int i = 0; i < 200; ++i) text += "line " + std::to_string(i * 7919 % 1000) + " of a text\n";
  test::put_contents(folder / "text.txt", text);
  Job job = job_from_json_text(
      R"({"model": {"d_model": 16, "num_layers": 1, "num_heads": 1, "vocab_size": 280},
          "training": {"max_length": 16, "batch_size": 4, "max_steps": 50, "threads": 1, "precision": "fp32",
                       "sample_prompts": ["line"], "sample_tokens": 3}})",
      "job");
  job.output = folder / "run";
  job.data.train = {folder / "text.txt"};
  job.data.cache_dir = folder / "cache";
  resolve_defaults(job);
  return job;
}

std::vector<json> watched_lines(const std::string& path) {
  std::vector<json> lines;
  std::istringstream text(contents_of(path));
  for (std::string line; std::getline(text, line);) lines.push_back(json::parse(line));
  return lines;
}

// The steps of all events with values, in the order of the files.
std::vector<int64_t> event_steps(const std::string& folder) {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) paths.push_back(entry.path().string());
  std::sort(paths.begin(), paths.end());
  std::vector<int64_t> steps;
  for (const std::string& path : paths) {
    const std::string bytes = contents_of(path);
    for (RecordReader records(bytes); records.next();) {
      int64_t step = 0;
      bool has_values = false;
      for (WireReader fields(records.record()); fields.next();) {
        if (fields.field() == 2) step = static_cast<int64_t>(fields.number());
        has_values |= fields.field() == 5;
      }
      if (has_values) steps.push_back(step);
    }
  }
  return steps;
}

TEST(RunWatch, AfterGoingBackNoStepIsThereTwiceAndNoTimeIsLost) {
  const ScratchFolder folder;
  test::ManualClock clock;
  TrainingSetup setup(small_job(folder), {.clock = &clock});
  RunWatch watch(setup.plan(), setup.run, setup.resources);
  const auto work_to = [&](int64_t step) {
    clock.advance(1);
    setup.run.state.step = step;
    watch.count(1, {.tokens = 100, .sequences = 4, .rows = 100});
    watch.step(StepMetrics{.step = step, .metrics = {standard_metric("loss", 3)}});
    watch.sample(step, 1, setup.run.ledger);
    watch.close_stretch();
  };
  work_to(10);
  work_to(20);
  work_to(30);
  setup.run.state.step = 10;
  setup.plan().directory.cut_metrics(10);
  watch.went_back();
  work_to(20);
  watch.end("finished");

  const std::vector<int64_t> steps = event_steps(setup.plan().directory.events_path());
  EXPECT_TRUE(std::is_sorted(steps.begin(), steps.end()));
  EXPECT_EQ(std::count(steps.begin(), steps.end(), 10), std::count(steps.begin(), steps.end(), 20));
  EXPECT_EQ(std::count(steps.begin(), steps.end(), 30), 0);
  std::vector<int64_t> samples;
  for (const json& line : watched_lines(setup.plan().directory.samples_path())) samples.push_back(line["step"]);
  EXPECT_EQ(samples, (std::vector<int64_t>{10, 20}));
  double seconds = 0;
  int64_t tokens = 0;
  for (const json& line : watched_lines(setup.plan().directory.ledger_path())) {
    if (line["kind"] != "stretch") continue;
    seconds += line["seconds"].get<double>();
    tokens += line["tokens"].get<int64_t>();
  }
  EXPECT_EQ(tokens, 200);
  EXPECT_EQ(seconds, 4) << "the lost steps took time as well";
  EXPECT_EQ(setup.run.ledger.totals().seconds(), 4);
}

TEST(RunWatch, GoingBackToBeforeThisProcessKeepsItsStart) {
  const ScratchFolder folder;
  test::ManualClock clock;
  TrainingSetup setup(small_job(folder), {.clock = &clock});
  setup.run.state.step = 40;  // as after a resume
  clock.advance(3);
  RunWatch watch(setup.plan(), setup.run, setup.resources);
  setup.run.state.step = 10;
  setup.plan().directory.cut_metrics(10);
  watch.went_back();
  watch.end("finished");
  const std::vector<json> lines = watched_lines(setup.plan().directory.ledger_path());
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0]["kind"], "start");
  EXPECT_EQ(lines[1]["kind"], "stretch");
  EXPECT_EQ(lines[1]["seconds"], 3);
}

}  // namespace
}  // namespace brisk
