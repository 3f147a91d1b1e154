// A run meets bad steps, or diverges: nothing is lost, everything is counted, and a kill changes nothing about it.
#include <gtest/gtest.h>
#include <signal.h>

#include "program/support/small_job.h"

namespace brisk::program {
namespace {

class Divergence : public ::testing::Test {
 protected:
  Divergence() { write_text(folder / "text.txt", english_like_text(300)); }

  // A rate that the model cannot bear, and half of it neither.
  static Json wild_job() {
    Json job = small_job();
    job["training"]["max_steps"] = 160;
    job["training"]["learning_rate"] = 1;
    job["training"]["lr_scheduler"] = "constant";
    job["training"]["max_grad_norm"] = 0;
    job["training"]["save_steps"] = 15;
    job["training"]["eval_steps"] = 40;
    return job;
  }

  Outcome resume(const std::string& run) {
    return run_brisk({"train", run + ".json", "--output", run, "--resume"}, folder);
  }

  TemporaryFolder folder;
};

TEST_F(Divergence, GoesBackAtALowerRateSaysSoAndEndsWithAModelThatLearned) {
  const Outcome outcome = train_small(folder, wild_job(), "run");
  const Json summary = read_json(folder / "run/summary.json");
  EXPECT_GE(summary["rollbacks"], 1);
  EXPECT_EQ(summary["step"], 160);
  EXPECT_LT(summary["loss"], 5.0);  // of 5.8 at the beginning
  EXPECT_NE(outcome.err.find("training diverged"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("with 0.5 times the scheduled learning rate"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("divergence guard: "), std::string::npos) << outcome.err;
  const std::vector<Json> lines = step_lines(metrics_of(folder / "run"));
  ASSERT_EQ(lines.size(), 160u);  // each step once
  for (size_t i = 0; i < lines.size(); ++i) EXPECT_EQ(lines[i]["step"], i + 1);
  EXPECT_EQ(lines.back()["rollbacks"], summary["rollbacks"]);
  EXPECT_LT(lines.back()["learning_rate"].get<double>(), 0.6);
}

TEST_F(Divergence, SurvivesKillsWithTheSameBits) {
  const Json job = wild_job();
  train_small(folder, job, "reference");
  ASSERT_GE(read_json(folder / "reference/summary.json")["rollbacks"], 1);
  write_job(folder, job, "run.json");
  std::vector<std::string> command = {"train", "run.json", "--output", "run"};
  // In the middle of what leads to the divergence, right after going back, and when all is well again.
  for (const char* moment : {"step 20/", "Returning to ", "step 50/", "step 110/"}) {
    Process process(command, folder);
    ASSERT_TRUE(process.wait_for(moment)) << moment;
    process.send(SIGKILL);
    ASSERT_EQ(process.finish().ended_by, SIGKILL) << moment;
    if (command.size() == 4) command.emplace_back("--resume");
  }
  const Outcome outcome = resume("run");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(curve_of(folder / "run"), curve_of(folder / "reference"));
  EXPECT_EQ(last_model_bytes(folder / "run"), last_model_bytes(folder / "reference"));
  Json summary = read_json(folder / "run/summary.json"), other = read_json(folder / "reference/summary.json");
  for (Json* each : {&summary, &other}) (*each)["best"].erase("seconds");
  for (const char* key : {"rollbacks", "skipped_updates", "best", "loss"}) EXPECT_EQ(summary[key], other[key]) << key;
}

TEST_F(Divergence, StopsWhenItMayNotGoBack) {
  Json job = wild_job();
  job["training"]["divergence_rollbacks"] = 0;
  write_job(folder, job);
  const Outcome outcome = run_brisk({"train", "job.json", "--output", "run"}, folder);
  EXPECT_EQ(outcome.exit_code, 2);
  for (const char* part :
       {"training diverged", "lower training.learning_rate (now 1) and training.muon_learning_rate (now 0.01)",
        "set training.max_grad_norm to 1 (now 0: no clipping)", "the last checkpoint is run/"})
    EXPECT_NE(outcome.err.find(part), std::string::npos) << outcome.err;
  const Json summary = read_json(folder / "run/summary.json");
  EXPECT_EQ(summary["ended"], "diverged");
  const int64_t step = summary["diverged_at"];
  EXPECT_GT(step, summary["step"].get<int64_t>());
  ASSERT_EQ(summary["warnings"].size(), 1u);
  EXPECT_TRUE(has(summary["warnings"][0].get<std::string>(), "training diverged")) << summary;
  EXPECT_GT(summary["wall_seconds"], 0.0);
  const std::string ledger = read_text(folder / "run/ledger.jsonl");
  EXPECT_TRUE(has(ledger.substr(ledger.find("\"end\"")), "\"diverged_at\":" + std::to_string(step))) << ledger;
  const std::string told = "diverged at step " + std::to_string(step);
  EXPECT_TRUE(has(run_brisk({"compare", "run"}, folder).out, told));
  EXPECT_EQ(run_brisk({"report", "run"}, folder).exit_code, 0);
  const std::string page = read_text(folder / "run/report.html");
  EXPECT_TRUE(has(page, told));
  EXPECT_TRUE(has(page, "training diverged"));
}

TEST_F(Divergence, IsNotAdvisedToClipWhatIsClipped) {
  Json job = wild_job();
  job["training"]["divergence_rollbacks"] = 0;
  job["training"]["max_grad_norm"] = 1;
  job["training"]["optimizer"] = "adamw";
  job["training"]["learning_rate"] = 10;
  write_job(folder, job);
  const Outcome outcome = run_brisk({"train", "job.json", "--output", "run"}, folder);
  ASSERT_EQ(outcome.exit_code, 2) << outcome.err;
  EXPECT_TRUE(has(outcome.err, "lower training.learning_rate (now 10), or raise training.warmup_ratio")) << outcome.err;
}

TEST_F(Divergence, WithoutTheGuardIsSeenAtTheEnd) {
  Json job = wild_job();
  job["training"]["divergence_guard"] = false;
  job["training"]["learning_rate"] = 10;
  job["training"]["max_steps"] = 60;
  job["training"]["load_best_model_at_end"] = false;
  const Outcome outcome = train_small(folder, job, "run");
  EXPECT_TRUE(has(outcome.err, "warning: the validation loss of step 60, ")) << outcome.err;
  EXPECT_TRUE(has(outcome.err, "is above ln 320 = 5.77, that of a guess among 320 tokens")) << outcome.err;
  ASSERT_EQ(read_json(folder / "run/summary.json")["warnings"].size(), 1u);
  EXPECT_EQ(run_brisk({"report", "run"}, folder).exit_code, 0);
  EXPECT_TRUE(has(read_text(folder / "run/report.html"), "that of a guess among 320 tokens"));
}

TEST_F(Divergence, IsNobodysBusinessWithoutTheGuard) {
  Json job = wild_job();
  job["training"]["divergence_guard"] = false;
  const Outcome outcome = train_small(folder, job, "run");
  EXPECT_EQ(outcome.err.find("diverged"), std::string::npos) << outcome.err;
  EXPECT_EQ(read_json(folder / "run/summary.json")["rollbacks"], 0);
}

TEST_F(Divergence, SkipsAnOutlierAndCountsItEverywhere) {
  // One line of noise among sentences, one sequence a step.
  std::string text = english_like_text(80);
  text += "q7#z!x0%k$9j&v(3)w*q8#z?x1%k$2j&v(4)w*q5#z!x6%k$7j\n";
  write_text(folder / "text.txt", text);
  Json job = small_job();
  job["training"]["batch_size"] = 1;
  job["training"]["max_steps"] = 400;
  job["training"]["learning_rate"] = 3e-3;
  job["data"]["validation_fraction"] = 0;
  const Outcome outcome = train_small(folder, job, "run");
  const Json summary = read_json(folder / "run/summary.json");
  ASSERT_GE(summary["skipped_updates"], 1) << outcome.err;
  EXPECT_EQ(summary["rollbacks"], 0);
  EXPECT_EQ(step_lines(metrics_of(folder / "run")).back()["skipped_updates"], summary["skipped_updates"]);
  EXPECT_NE(outcome.err.find("update skipped: the "), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("  skipped\n"), std::string::npos) << outcome.err;  // a column of the table
}

}  // namespace
}  // namespace brisk::program
