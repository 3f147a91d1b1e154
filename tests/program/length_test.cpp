// How long a run is: training.stop and --stop.
#include <gtest/gtest.h>
#include <signal.h>

#include <sstream>

#include "program/support/small_job.h"

namespace brisk::program {
namespace {

class Length : public ::testing::Test {
 protected:
  Length() {
    write_text(folder / "text.txt", english_like_text(300));
    job = small_job();
    job["training"].erase("max_steps");
    write_job(folder, job);
  }

  Outcome train(const std::string& stop, const std::string& run, std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {"train", "job.json", "--output", run, "--stop", stop};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_brisk(arguments, folder);
  }

  int64_t steps(const std::string& stop) {
    const std::string run = "run" + stop;
    const Outcome outcome = train(stop, run);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return read_json(folder / run + "/summary.json")["step"];
  }

  TemporaryFolder folder;
  Json job;
};

TEST_F(Length, CountsEpochsUpdatesAndTokens) {
  const int64_t epoch = steps("1e");
  EXPECT_GT(epoch, 10);
  EXPECT_EQ(steps("2e"), 2 * epoch);
  EXPECT_EQ(steps("0.5e"), (epoch + 1) / 2);
  EXPECT_EQ(steps("7u"), 7);
  EXPECT_EQ(steps("0.02Ku"), 20);
  const int64_t epoch_tokens = read_json(folder / "run1e/summary.json")["tokens"];
  EXPECT_NEAR(static_cast<double>(steps("3Kt")),
              3000.0 * static_cast<double>(epoch) / static_cast<double>(epoch_tokens), 1);
}

TEST_F(Length, IsSaidOnce) {
  job["training"]["stop"] = "2e";
  job["training"]["max_steps"] = 3;
  write_job(folder, job);
  const Outcome outcome = run_brisk({"train", "job.json", "--output", "run"}, folder);
  EXPECT_EQ(outcome.exit_code, 2);
  for (const char* part : {"training.stop = \"2e\"", "training.max_steps = 3"})
    EXPECT_NE(outcome.err.find(part), std::string::npos) << outcome.err;
  const Outcome wrong = train("30", "run");
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_NE(wrong.err.find("did you mean 30u, 30e or 30m?"), std::string::npos) << wrong.err;
  EXPECT_EQ(listing(folder / "run"), "");
}

// That it ends on time, with its schedule complete: tests/train/run/run_time_test.cpp, on a clock of its own.
TEST_F(Length, InTimeEndsWithAnEvaluationAndNothingLeftToDo) {
  const Outcome outcome = train("2s", "run");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json summary = read_json(folder / "run/summary.json");
  EXPECT_EQ(summary["ended"], "finished");
  EXPECT_NE(outcome.err.find("training.stop 2s: ended after "), std::string::npos) << outcome.err;
  EXPECT_EQ(evaluation_lines(metrics_of(folder / "run")).back()["step"], summary["step"]);

  // What was expected at first is not what it had.
  const Json report = Json::parse(run_brisk({"report", "run", "--json"}, folder).out);
  EXPECT_EQ(report["step"], summary["step"]);
  EXPECT_EQ(report["total_steps"], summary["step"]);
  std::istringstream lines_of_progress(outcome.err);
  for (std::string line; std::getline(lines_of_progress, line);) {
    const size_t left = line.find("  left ");
    if (left == std::string::npos) continue;
    const std::string text = line.substr(left + 7);  // "3.20 s", "870 ms", "927 us", "0 s"
    EXPECT_TRUE(has(text, "ms") || has(text, "us") || std::stod(text) <= 2.0) << line;
  }

  // Nothing is left to do, however much time the box has left.
  const Outcome again = train("2s", "run", {"--resume"});
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(read_json(folder / "run/summary.json")["step"], summary["step"]);
}

TEST_F(Length, InTimeGoesOnWithTheTimeThatIsLeft) {
  const auto stop_at_a_step = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments = {"train", "job.json", "--output", "run", "--stop", "10h"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    Process process(arguments, folder);
    EXPECT_TRUE(process.wait_for(" loss "));
    process.send(SIGTERM);
    const Outcome outcome = process.finish();
    EXPECT_EQ(outcome.exit_code, 130) << outcome.err;
    const std::string state = folder / "run/checkpoints/" + checkpoints_of(folder / "run").back() + "/state.json";
    return read_json(state)["clock"];
  };
  const auto number = [](const Json& clock, const char* key) { return std::stod(clock[key].get<std::string>()); };
  const Json first = stop_at_a_step({}), second = stop_at_a_step({"--resume"});
  EXPECT_GT(number(first, "elapsed_seconds"), 0);
  EXPECT_GT(number(first, "progress"), 0);
  EXPECT_GT(number(second, "elapsed_seconds"), number(first, "elapsed_seconds"));
  EXPECT_GT(number(second, "progress"), number(first, "progress"));
  EXPECT_LT(number(second, "progress"), 1);
}

TEST_F(Length, AutomaticBatchMeasuresTheMicroBatchAndResumesWithTheSame) {
  job["training"]["batch_size"] = "auto";
  job["training"]["max_steps"] = 100000;
  write_job(folder, job);
  Process process({"train", "job.json", "--output", "run"}, folder);
  ASSERT_TRUE(process.wait_for("step 9/"));
  process.send(SIGINT);
  const Outcome outcome = process.finish();
  ASSERT_EQ(outcome.exit_code, 130) << outcome.err;
  EXPECT_NE(outcome.err.find("batch_size = 128 (auto"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("the fastest measured"), std::string::npos) << outcome.err;
  const std::string checkpoint = folder / "run/checkpoints/" + checkpoints_of(folder / "run").back();
  const Json choices = read_json(checkpoint + "/state.json")["choices"];
  Process resumed({"train", "job.json", "--output", "run", "--resume"}, folder);
  ASSERT_TRUE(resumed.wait_for(" loss "));
  resumed.send(SIGINT);
  const Outcome after = resumed.finish();
  ASSERT_EQ(after.exit_code, 130) << after.err;
  EXPECT_EQ(after.err.find("the fastest measured"), std::string::npos) << after.err;
  const std::string later = folder / "run/checkpoints/" + checkpoints_of(folder / "run").back();
  EXPECT_EQ(read_json(later + "/state.json")["choices"], choices);
}

}  // namespace
}  // namespace brisk::program
