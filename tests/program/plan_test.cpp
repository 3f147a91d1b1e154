// `brisk plan`: what a user gets of it. Times mean nothing here; scripts/check_plan.py compares them with trainings.
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>

#include "program/support/small_job.h"

namespace brisk::program {
namespace {

class Plan : public ::testing::Test {
 protected:
  Plan() {
    write_text(folder / "text.txt", english_like_text(400));
    job = small_job();
    job["training"]["precision"] = "fp32";
  }

  Outcome plan(std::vector<std::string> more = {}) {
    write_job(folder, job);
    std::vector<std::string> arguments = {"plan", "job.json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_brisk(arguments, folder);
  }

  Json planned(std::vector<std::string> more = {}) {
    more.emplace_back("--json");
    const Outcome outcome = plan(std::move(more));
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return outcome.exit_code == 0 ? Json::parse(outcome.out) : Json();
  }

  std::string refusal(std::vector<std::string> more) {
    const Outcome outcome = plan(std::move(more));
    EXPECT_EQ(outcome.exit_code, 2) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    return outcome.err;
  }

  TemporaryFolder folder;
  Json job;
};

TEST_F(Plan, TellsWhatATrainingTakesAndLeavesNothingBehind) {
  write_job(folder, job);
  run_brisk({"train", "job.json", "--dry-run"}, folder);  // what the cache has from now on
  const std::string before = listing(folder.path());
  const Json found = planned();
  EXPECT_EQ(listing(folder.path()), before);
  EXPECT_EQ(found["fits"], true);
  for (const char* key :
       {"parameters", "flop_per_token", "memory_bytes", "tokens_per_second", "epoch_seconds", "disk_bytes"})
    EXPECT_GT(found[key], 0) << key;
  std::vector<std::string> kinds;
  for (const Json& row : found["what_if"]) {
    kinds.push_back(row["id"]);
    EXPECT_GT(row["epoch_seconds"], 0) << row;
  }
  EXPECT_EQ(kinds, (std::vector<std::string>{"layers", "width", "data", "machines", "machines"}));
  EXPECT_FALSE(found["shapes"].empty());
  EXPECT_TRUE(found["models"].empty());
  // What is counted is what a run then has.
  ASSERT_EQ(run_brisk({"train", "job.json", "--output", "run"}, folder).exit_code, 0);
  EXPECT_EQ(read_json(folder / "run/summary.json")["parameters"], found["parameters"]);
}

TEST_F(Plan, PutsTwoJobsSideBySide) {
  Json larger = job;
  larger["model"]["num_layers"] = 4;
  write_job(folder, larger, "larger.json");
  const Json found = planned({"larger.json"});
  EXPECT_GT(found["other"]["parameters"], found["parameters"]);
  EXPECT_EQ(found["comparison"][0]["name"], "parameters");
  EXPECT_GT(found["comparison"][0]["ratio"], 1);
  EXPECT_TRUE(found["what_if"].empty());
  const Outcome shown = plan({"larger.json"});
  EXPECT_NE(shown.out.find("ratio"), std::string::npos) << shown.out;
}

TEST_F(Plan, PredictsForAMachineThatIsDescribed) {
  const Outcome machine = run_brisk({"machine", "--json"}, folder);
  ASSERT_EQ(machine.exit_code, 0);
  Json described = Json::parse(machine.out);
  described["memory_available_bytes"] = 120 << 20;  // less than the program itself and a model
  described.erase("gpus");
  write_text(folder / "machine.json", described.dump());
  const Json found = planned({"--machine", "machine.json"});
  EXPECT_EQ(found["fits"], true);
  EXPECT_EQ(found["machine"]["file"], "machine.json");
  EXPECT_GT(found["tokens_per_second"], 0);
  EXPECT_GT(found["here"]["tokens_per_second"], 0);
  EXPECT_NE(found["basis"].get<std::string>().find("measured rates of both machines"), std::string::npos);
  described["memory_available_bytes"] = 100 << 20;
  write_text(folder / "machine.json", described.dump());
  const Json none = planned({"--machine", "machine.json"});
  EXPECT_EQ(none["fits"], false);
  EXPECT_EQ(none["here"]["fits"], true);
}

TEST_F(Plan, DividesAStepAmongRanks) {
  const Outcome machine = run_brisk({"launch", "-n", "2", "machine", "--json"}, folder);
  ASSERT_EQ(machine.exit_code, 0) << machine.err;
  write_text(folder / "ranks.json", machine.out);
  const Json found = planned({"--machine", "ranks.json"});
  EXPECT_EQ(found["ranks"], 2);
  const double step = found["step_seconds"], exposed = found["exposed_communication_seconds"],
               part = found["part_seconds"];
  EXPECT_GT(exposed, 0);
  EXPECT_GT(step, exposed);
  EXPECT_GT(part, 0);
  EXPECT_NE(found["basis"].get<std::string>().find("the part of one of 2 ranks timed here"), std::string::npos);
  EXPECT_TRUE(found["what_if"].empty());
  EXPECT_EQ(found["here"]["ranks"], 1);
  // A network that adds what a step takes.
  Json slow = Json::parse(machine.out);
  slow["ranks"].erase("sum");
  slow["ranks"].erase("share");
  slow["ranks"]["bytes_per_second"] = 1e6;
  write_text(folder / "slow.json", slow.dump());
  EXPECT_GT(planned({"--machine", "slow.json"})["exposed_communication_seconds"].get<double>(), 10 * exposed);
  slow["ranks"]["size"] = 1000000;
  write_text(folder / "slow.json", slow.dump());
  const Json many = planned({"--machine", "slow.json"});
  EXPECT_EQ(many["ranks"], 1) << "some ranks would have nothing to do";
  EXPECT_NE(many["notes"].dump().find("fewer sequences than the 1000000 ranks"), std::string::npos);
}

TEST_F(Plan, TellsAClassifierWhichModelsItCouldTake) {
  std::string table = "text,label\n";
  for (int i = 0; i < 200; ++i)
    table += "it is " + std::string(i % 2 == 0 ? "fine " : "awful ") + std::to_string(i) + "," + std::to_string(i % 2) +
             "\n";
  write_text(folder / "table.csv", table);
  job = {{"task", "classify"},
         {"model", {{"d_model", 32}, {"num_layers", 2}, {"num_heads", 2}, {"vocab_size", 200}}},
         {"training", {{"max_length", 16}, {"batch_size", 8}, {"precision", "fp32"}, {"num_epochs", 2}}},
         {"data", {{"train", {"table.csv"}}}}};
  const Json found = planned();
  EXPECT_EQ(found["models"].size(), 11);
  for (const Json& model : found["models"]) {
    EXPECT_GT(model["parameters"], 4'000'000) << model;
    EXPECT_GT(model["epoch_seconds"], 0) << model;
    const bool is_distilbert = model["name"] == "DistilBERT";
    EXPECT_EQ(model["parameters"] == 66'955'010, is_distilbert) << model;
  }
  EXPECT_TRUE(found["shapes"].empty());
}

TEST_F(Plan, RefusesWhatCannotBe) {
  write_text(folder / "other.json", "{\"model\": {\"bogus\": 1}}");
  EXPECT_NE(refusal({"other.json"}).find("bogus"), std::string::npos);
  write_text(folder / "machine.json", "{}");
  EXPECT_NE(refusal({"--machine", "machine.json"}).find("brisk machine --json"), std::string::npos);
  EXPECT_NE(refusal({"--machine", "missing.json"}).find("missing.json"), std::string::npos);
  EXPECT_NE(refusal({"--set", "training.max_length=\"long\""}).find("max_length"), std::string::npos);
  job["training"]["best_by"] = "beauty";
  EXPECT_NE(refusal({}).find("best_by"), std::string::npos);
  job = small_job();
  job["data"]["train"] = {"missing.txt"};
  EXPECT_NE(refusal({}).find("missing.txt"), std::string::npos);
}

TEST_F(Plan, InterruptedLeavesNothingBehind) {
  write_job(folder, job);
  run_brisk({"train", "job.json", "--dry-run"}, folder);
  const std::string before = listing(folder.path());
  Process process({"plan", "job.json"}, folder);
  ASSERT_TRUE(process.wait_for("timing steps"));
  process.send(SIGINT);
  const Outcome outcome = process.finish();
  EXPECT_EQ(outcome.exit_code, 130) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(listing(folder.path()), before);
}

TEST_F(Plan, OfAJobThatDoesNotFitSaysSo) {
  const Outcome outcome = run_brisk({"plan", write_job(folder, job), "--json", "--set", "model.d_model=65536", "--set",
                                     "model.num_layers=200", "--set", "model.num_heads=512"},
                                    folder);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json found = Json::parse(outcome.out);
  EXPECT_EQ(found["fits"], false);
  EXPECT_TRUE(found["tokens_per_second"].is_null());
  EXPECT_FALSE(found["notes"].empty());
}

}  // namespace
}  // namespace brisk::program
