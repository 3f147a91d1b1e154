// From a trained model to another: model.from, frozen layers, adapters, and formats of other programs.
#include <gtest/gtest.h>

#include <filesystem>

#include "program/support/small_job.h"

namespace brisk::program {
namespace {

// Llama's shape, so that every format can take it.
Json base_job() {
  Json job = small_job();
  job["model"]["type"] = "llama";
  job["training"]["max_steps"] = 20;
  return job;
}

Json tuning_job(const std::string& from) {
  Json job = small_job();
  job.erase("model");
  job["model"]["from"] = from;
  job["training"]["max_steps"] = 30;
  job["training"]["save_steps"] = 10;
  job["training"]["save_total_limit"] = 0;
  job["training"]["learning_rate"] = 0.01;
  return job;
}

double loss_of(const TemporaryFolder& folder, const std::string& model) {
  const Outcome outcome = run_brisk({"eval", model, "--data", "text.txt", "--json", "--fp32"}, folder);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  return outcome.exit_code == 0 ? Json::parse(outcome.out).at("loss").get<double>() : 0;
}

class FineTune : public ::testing::Test {
 protected:
  FineTune() { train_small(folder, base_job(), "base"); }
  TemporaryFolder folder;
};

TEST_F(FineTune, GoesOnFromARunWithItsArchitectureAndTokenizer) {
  train_small(folder, tuning_job("base"), "tuned");
  const Json base = read_json(folder / "base/job.json"), tuned = read_json(folder / "tuned/job.json");
  for (const char* key : {"d_model", "num_layers", "norm", "vocab_size", "context"}) {
    EXPECT_EQ(tuned["model"][key], base["model"][key]) << key;
  }
  EXPECT_EQ(read_json(folder / "tuned/tokenizer.json"), read_json(folder / "base/tokenizer.json"));
  EXPECT_LT(loss_of(folder, "tuned"), loss_of(folder, "base"));
}

TEST_F(FineTune, ChoosesSmallerRatesForWeightsThatAreTrainedAlready) {
  const auto rates = [&](const std::string& run, const Json& settings) {
    Json job = tuning_job("base");
    job["training"]["max_steps"] = 1;
    job["training"].erase("learning_rate");
    job["training"].update(settings);
    train_small(folder, job, run);
    const Json training = read_json(folder / (run + "/job.json"))["training"];
    return std::pair(training["learning_rate"].get<double>(), training["muon_learning_rate"].get<double>());
  };
  // d_model is 32: sqrt(256 / 32) = 2.83 times the rate at 256.
  EXPECT_EQ(rates("muon", Json::object()), std::pair(0.0011, 0.001));
  EXPECT_EQ(rates("adamw", {{"optimizer", "adamw"}}).first, 0.00028);
  EXPECT_EQ(rates("adapters", {{"lora_rank", 2}}).first, 0.0028);
  EXPECT_EQ(rates("given", {{"muon_learning_rate", 0.02}}).second, 0.02);
}

TEST_F(FineTune, GoesBackToTheModelItStartedFrom) {
  Json job = tuning_job("base");
  job["training"]["train_layers"] = 1;
  job["training"]["learning_rate"] = 3;
  job["training"]["muon_learning_rate"] = 3;
  job["training"]["lr_scheduler"] = "constant";
  job["training"]["warmup_steps"] = 0;
  job["training"]["max_grad_norm"] = 0;
  job["training"]["max_steps"] = 120;
  job["training"]["save_steps"] = 1000;  // nothing to go back to but the beginning
  job["training"]["eval_steps"] = 1000;
  job["training"]["divergence_rollbacks"] = 20;
  train_small(folder, job, "wild");
  EXPECT_GE(read_json(folder / "wild/summary.json")["rollbacks"], 1);
  job["training"]["max_steps"] = 1;
  train_small(folder, job, "calm");
  EXPECT_EQ(read_text(folder / "wild/frozen.safetensors"), read_text(folder / "calm/frozen.safetensors"));
  const std::vector<Json> wild = step_lines(metrics_of(folder / "wild")),
                          calm = step_lines(metrics_of(folder / "calm"));
  ASSERT_FALSE(wild.empty() || calm.empty());
  EXPECT_EQ(wild.front()["loss"], calm.front()["loss"]);  // of the model as it came, before the first update
}

TEST_F(FineTune, WithAdaptersOrLastLayersIsResumedToTheBit) {
  for (const char* key : {"lora_rank", "train_layers"}) {
    Json job = tuning_job("base");
    job["training"][key] = 1;
    const std::string whole = std::string("whole-") + key, broken = std::string("broken-") + key;
    train_small(folder, job, whole);
    train_small(folder, job, broken);
    const double before = loss_of(folder, "base");
    EXPECT_LT(loss_of(folder, whole), before) << key;
    // As if it had been killed before the last checkpoint; and the source is not needed to go on.
    const std::vector<std::string> checkpoints = checkpoints_of(folder / broken);
    ASSERT_GE(checkpoints.size(), 2u);
    std::filesystem::remove_all(folder / (broken + "/checkpoints/" + checkpoints.back()));
    std::filesystem::rename(folder / "base", folder / "moved");
    write_job(folder, job);
    const Outcome resumed = run_brisk({"train", "job.json", "--output", broken, "--resume"}, folder);
    std::filesystem::rename(folder / "moved", folder / "base");
    ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
    EXPECT_EQ(curve_of(folder / broken), curve_of(folder / whole)) << key;
    EXPECT_EQ(last_model_bytes(folder / broken), last_model_bytes(folder / whole)) << key;
    EXPECT_LT(last_model_bytes(folder / whole).size(), last_model_bytes(folder / "base").size()) << key;
  }
}

TEST_F(FineTune, WithAdaptersKeepsItsLossThroughEveryFormat) {
  Json job = tuning_job("base");
  job["training"]["lora_rank"] = 4;
  train_small(folder, job, "tuned");
  const double loss = loss_of(folder, "tuned");
  for (const char* format : {"huggingface", "gguf"}) {
    const std::string out = std::string("out.") + format, run = std::string("again-") + format;
    const Outcome exported = run_brisk({"export", "tuned", "--format", format, "--output", out}, folder);
    ASSERT_EQ(exported.exit_code, 0) << exported.err;
    const Outcome imported = run_brisk({"import", out, "--output", run}, folder);
    ASSERT_EQ(imported.exit_code, 0) << imported.err;
    EXPECT_NEAR(loss_of(folder, run), loss, 1e-5) << format;
    EXPECT_NEAR(loss_of(folder, out), loss, 1e-5) << format;
  }
}

TEST_F(FineTune, RefusesWhatCannotBeAndNamesIt) {
  const auto complaint = [&](const Json& job) {
    write_job(folder, job, "bad.json");
    const Outcome outcome = run_brisk({"train", "bad.json", "--output", "bad"}, folder);
    EXPECT_EQ(outcome.exit_code, 2) << outcome.err;
    EXPECT_FALSE(std::filesystem::exists(folder / "bad"));
    return outcome.err;
  };
  Json job = tuning_job("base");
  job["model"]["d_model"] = 48;
  EXPECT_TRUE(has(complaint(job), "model.d_model is 32 there and 48 in the job"));
  job = tuning_job("nowhere");
  EXPECT_TRUE(has(complaint(job), "nowhere: no such run directory"));
  job = tuning_job("base");
  job["training"]["train_layers"] = 7;
  EXPECT_TRUE(has(complaint(job), "training.train_layers = 7, but the model has 2 layers"));
  job = tuning_job("base");
  job["training"]["lora_rank"] = 4;
  job["training"]["lora_matrices"] = {"qkv", "dwon"};
  EXPECT_TRUE(has(complaint(job), "'dwon' is none of qkv, attention_out, up, down; did you mean down?"));
  job = base_job();
  job["training"]["lora_rank"] = 4;
  EXPECT_TRUE(has(complaint(job), "model.from"));
}

TEST_F(FineTune, AnImportedModelHasNothingToResume) {
  ASSERT_EQ(run_brisk({"export", "base", "--format", "huggingface", "--output", "hf"}, folder).exit_code, 0);
  ASSERT_EQ(run_brisk({"import", "hf", "--output", "imported"}, folder).exit_code, 0);
  EXPECT_TRUE(has(run_brisk({"compare", "imported"}, folder).out, "imported"));
  EXPECT_FALSE(has(run_brisk({"report", "imported", "--json"}, folder).out, "unfinished"));
  const Outcome again = run_brisk({"import", "hf", "--output", "imported"}, folder);
  EXPECT_EQ(again.exit_code, 2);
  EXPECT_TRUE(has(again.err, "it already holds a run")) << again.err;
  const Outcome resumed =
      run_brisk({"train", "imported/job.json", "--data", "text.txt", "--output", "imported", "--resume"}, folder);
  EXPECT_EQ(resumed.exit_code, 2);
  EXPECT_TRUE(has(resumed.err, "model.from") || has(resumed.err, "imported model")) << resumed.err;
}

}  // namespace
}  // namespace brisk::program
