// `brisk doctor`: what a user gets of it. Times mean nothing here; what was measured must be there and hang together.
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>

#include "program/support/small_job.h"

namespace brisk::program {
namespace {

class Doctor : public ::testing::Test {
 protected:
  Doctor() {
    write_text(folder / "text.txt", english_like_text(400));
    job = small_job();
    job["training"]["precision"] = "fp32";
    job["training"]["max_length"] = 128;  // a text has a tenth of that
  }

  Outcome doctor(std::vector<std::string> more) {
    write_job(folder, job);
    std::vector<std::string> arguments = {"doctor", "job.json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_brisk(arguments, folder);
  }

  // The same with a longer budget where a machine that is busy with other things was too slow for the first.
  Outcome doctor_that_tries_padding(const std::vector<std::string>& more) {
    Outcome outcome;
    for (const char* budget : {"10s", "60s"}) {
      std::vector<std::string> arguments = {"--json", "--budget", budget};
      arguments.insert(arguments.end(), more.begin(), more.end());
      outcome = doctor(arguments);
      if (outcome.exit_code == 0 && rung_of(Json::parse(outcome.out), "padding") != nullptr) break;
    }
    return outcome;
  }

  // Of a fix that was kept.
  static Json rung_of(const Json& found, const std::string& finding) {
    for (const Json& rung : found["ladder"])
      if (rung["finding"] == finding && rung["kept"] == true) return rung;
    return nullptr;
  }

  std::string refusal(std::vector<std::string> more) {
    const Outcome outcome = doctor(std::move(more));
    EXPECT_EQ(outcome.exit_code, 2) << outcome.err;
    return outcome.err;
  }

  TemporaryFolder folder;
  Json job;
};

TEST_F(Doctor, ClimbsFromTheNaiveJobAndLeavesNothingBehind) {
  write_job(folder, job);
  run_brisk({"train", "job.json", "--dry-run"}, folder);  // what the cache has from now on
  const std::string before = listing(folder.path());
  const Outcome outcome = doctor_that_tries_padding({"--baseline", "naive"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(listing(folder.path()), before);
  const Json found = Json::parse(outcome.out);
  for (const char* key : {"vital_signs", "ledger", "findings", "ladder", "not_measured", "job"})
    EXPECT_TRUE(found.contains(key)) << key;
  double sum = 0;
  for (const Json& phase : found["ledger"]["before"]["phases"]) sum += phase["share"].get<double>();
  EXPECT_NEAR(sum, 100, 1);
  const Json& first = found["ladder"][0];
  EXPECT_GT(first["tokens_per_second"], 0);
  EXPECT_EQ(first["kept"], true);
  EXPECT_EQ(first["cumulative"], 1);
  // Whatever else is found, padding is, and it is worth a fix.
  const Json rung = rung_of(found, "padding");
  ASSERT_NE(rung, nullptr) << outcome.out;
  EXPECT_EQ(rung["proof"]["holds"], true);
  EXPECT_EQ(found["job"]["training"]["padding"], "none");
}

TEST_F(Doctor, WritesTheTunedJobWhichIsComparedWhenItIsTrained) {
  job["training"]["padding"] = "max_length";
  job["training"]["max_steps"] = 20;
  const Outcome outcome = doctor_that_tries_padding(
      {"--try", "training.gradient_checkpointing=1", "--apply", "fast.json", "--report", "page.html"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json asked = Json::parse(outcome.out)["ladder"][1];
  EXPECT_EQ(asked["key"], "training.gradient_checkpointing");
  EXPECT_EQ(asked["same_maths"], "same bits");
  EXPECT_EQ(asked["kept"], false);
  EXPECT_TRUE(std::filesystem::exists(folder / "page.html"));
  ASSERT_TRUE(std::filesystem::exists(folder / "fast.json")) << outcome.out << outcome.err;
  const std::string fast = read_text(folder / "fast.json");
  EXPECT_NE(fast.find("// "), std::string::npos);
  EXPECT_NE(fast.find("\"padding\": \"none\""), std::string::npos) << fast;
  const Outcome trained = run_brisk({"train", "fast.json"}, folder);
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_NE(trained.err.find("beside job.json"), std::string::npos) << trained.err;
  EXPECT_NE(trained.err.find("time per epoch"), std::string::npos) << trained.err;
}

TEST_F(Doctor, RefusesWhatCannotBe) {
  EXPECT_NE(refusal({"--budget", "1s"}).find("too short"), std::string::npos);
  EXPECT_NE(refusal({"--budget", "2e"}).find("expected a time"), std::string::npos);
  EXPECT_NE(refusal({"--apply", "job.json"}).find("the job itself"), std::string::npos);
  EXPECT_NE(refusal({"--report", "no/such/folder/page.html"}).find("no/such/folder"), std::string::npos);
  EXPECT_NE(refusal({"--baseline", "clever"}).find("naive"), std::string::npos);
  EXPECT_NE(refusal({"--try", "training.padding"}).find("KEY=VALUE"), std::string::npos);
  EXPECT_NE(refusal({"--try", "model.bogus=3"}).find("unknown key"), std::string::npos);
  EXPECT_NE(refusal({"--budget", "0"}).find("--budget: found \"0\", expected a time"), std::string::npos);
  EXPECT_NE(refusal({"--apply", "text.txt"}).find("the job's data, which stay as they are"), std::string::npos);
  EXPECT_NE(refusal({"--apply", "new.json", "--report", "./new.json"}).find("the same file"), std::string::npos);
  EXPECT_NE(refusal({"--set", "data.train=\"other.txt\""}).find("other.txt: no such file"), std::string::npos);
  EXPECT_EQ(read_text(folder / "text.txt"), english_like_text(400));
  job["data"]["train"] = {"missing.txt"};
  EXPECT_NE(refusal({}).find("missing.txt"), std::string::npos);
}

TEST_F(Doctor, VerifiesByTrainingBothJobsToTheirEnd) {
  job["training"]["max_steps"] = 8;
  const Outcome outcome = doctor({"--budget", "15s", "--json", "--verify"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_TRUE(has(outcome.err, "training the written job to its end"));
  EXPECT_TRUE(has(outcome.err, "training the tuned job to its end"));
}

TEST_F(Doctor, RepeatsItselfInWordsThatAShellReadsBack) {
  const std::string name = "a job's; touch gone.json";
  write_text(folder / name, job.dump());
  const Outcome outcome = run_brisk(
      {"doctor", name, "--budget", "15s", "--set", "comment=it's $(mine)", "--try", "model.d_model=65536"}, folder);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_TRUE(has(outcome.out, R"(brisk doctor 'a job'\''s; touch gone.json' --set 'comment=it'\''s $(mine)')"))
      << outcome.out;
  EXPECT_FALSE(has(outcome.out, "\\n")) << "a rung that cannot be trained is told in one line: " << outcome.out;
}

TEST_F(Doctor, InterruptedSaysWhatIsKnown) {
  write_job(folder, job);
  Process process({"doctor", "job.json", "--baseline", "naive", "--budget", "60s"}, folder);
  ASSERT_TRUE(process.wait_for("predicted "));  // the first rung is measured, and a fix begun
  process.send(SIGINT);
  const Outcome outcome = process.finish();
  EXPECT_EQ(outcome.exit_code, 130) << outcome.err;
  EXPECT_NE(outcome.out.find("VITAL SIGNS"), std::string::npos) << outcome.out;
}

}  // namespace
}  // namespace brisk::program
