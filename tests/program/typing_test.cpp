// What people type: familiar flags, a run instead of its job, a text instead of a job, and the flags of generation.
#include <gtest/gtest.h>

#include <filesystem>

#include "program/support/small_job.h"

namespace brisk::program {
namespace {

class Typing : public ::testing::Test {
 protected:
  Typing() {
    write_text(folder / "text.txt", english_like_text(150));
    job = small_job();
    job["training"]["max_steps"] = 6;
    write_job(folder, job);
  }

  Outcome brisk(std::vector<std::string> arguments, const ProcessOptions& options = {}) {
    return run_brisk(std::move(arguments), folder, options);
  }
  int64_t steps_of(const std::string& run) { return read_json(folder / run + "/summary.json")["step"]; }

  TemporaryFolder folder;
  Json job;
};

TEST_F(Typing, FamiliarFlagsAreToldWhatTheyAreHere) {
  for (const auto& [arguments, hint] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"--epochs", "3"}, "--epochs: brisk train has no such flag; use --stop 3e"},
           {{"--num_train_epochs=2"}, "use --stop 2e"},
           {{"--max-steps", "500"}, "use --stop 500u"},
           {{"--batch-size", "8"}, "use --set training.batch_size=8"},
           {{"--learning-rate", "2e-5"}, "use --set training.learning_rate=2e-5"},
           {{"--lr", "1"}, "use --set training.learning_rate=1"},
           {{"--weight_decay", "0"}, "use --set training.weight_decay=0"},
           {{"--early-stopping"}, "use --set training.early_stopping_patience=3"},
           {{"--output_dir", "out"}, "use --output out"},
           {{"--fp16"}, "use --set training.precision=fp16"},
           {{"--workers", "3"}, "use --set training.num_workers=3"},
           {{"--evaluation_strategy", "epoch"}, "use --set evaluation_strategy=epoch"},
           {{"-o", "out"}, "what it writes is named by --output"},
           {{"--push_to_hub"}, "nothing is uploaded"},
           {{"--frobnicate"}, "--frobnicate: brisk train has no such flag"}}) {
    std::vector<std::string> command = {"train", "job.json"};
    command.insert(command.end(), arguments.begin(), arguments.end());
    const Outcome outcome = brisk(command);
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_TRUE(has(outcome.err, hint)) << outcome.err;
  }
  EXPECT_FALSE(has(brisk({"train", "job.json", "-v"}).err, "--output")) << "it is no other spelling of that";
  EXPECT_FALSE(has(brisk({"trian", "job.json"}).err, "generate")) << "the list is for who has no idea";
}

TEST_F(Typing, ARunIsEnoughToGoOnWithItAndItGoesOnForLonger) {
  ASSERT_EQ(brisk({"train", "job.json", "--output", "run"}).exit_code, 0);
  const Outcome plain = brisk({"train", "run"});
  EXPECT_EQ(plain.exit_code, 2);
  EXPECT_TRUE(has(plain.err, "run: a run; add --resume to go on with it")) << plain.err;
  EXPECT_TRUE(has(brisk({"train", "run", "--resume"}).err, "nothing to do; to go on, make it longer"));
  EXPECT_TRUE(has(brisk({"report", "run", "--json"}).out, "\"processes\": 1")) << "that one did nothing";

  const Outcome longer = brisk({"train", "run", "--resume", "--set", "training.max_steps=10"});
  EXPECT_EQ(longer.exit_code, 0) << longer.err;
  EXPECT_TRUE(has(longer.err, "the run is 10 steps long now, 10 steps: from step 7 on")) << longer.err;
  EXPECT_EQ(steps_of("run"), 10);
  EXPECT_EQ(brisk({"train", "run", "--resume", "--stop", "12u"}).exit_code, 0);
  EXPECT_EQ(steps_of("run"), 12);
  EXPECT_EQ(brisk({"train", "run", "--resume", "--set", "num_epochs=1"}).exit_code, 0);
  EXPECT_GT(steps_of("run"), 12);
  // As long from the start as it became, from where it was told of it.
  job["training"]["max_steps"] = 10;
  write_job(folder, job, "long.json");
  ASSERT_EQ(brisk({"train", "long.json", "--output", "long"}).exit_code, 0);
  const std::vector<Json> a = step_lines(curve_of(folder / "run")), b = step_lines(curve_of(folder / "long"));
  for (size_t step = 6; step < 10; ++step) EXPECT_EQ(a[step]["learning_rate"], b[step]["learning_rate"]) << step;
}

TEST_F(Typing, EvaluationsLogsAndCheckpointsMayBeChangedOnResume) {
  ASSERT_EQ(brisk({"train", "job.json", "--output", "run"}).exit_code, 0);
  const Outcome outcome = brisk({"train", "run", "--resume", "--stop", "12u", "--set", "eval_steps=2", "--set",
                                 "logging_steps=3", "--set", "save_steps=4", "--set", "save_total_limit=1"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(evaluation_lines(metrics_of(folder / "run")).size(), 1u + 3);
}

TEST_F(Typing, ATextIsTrainedOnWithTheDefaultJob) {
  const Outcome outcome = brisk({"train", "text.txt", "--dry-run", "--set", "training.threads=1"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_TRUE(has(outcome.err, "text.txt: text, so a language model with the default settings is trained on it"))
      << outcome.err;
  EXPECT_TRUE(has(outcome.err, "runs/text")) << outcome.err;
  write_text(folder / "reviews.csv", "text,label\na,b\n");
  EXPECT_TRUE(has(brisk({"train", "reviews.csv"}).err, "{\"task\": \"classify\"}"));
  std::filesystem::create_directory(folder / "books");
  EXPECT_TRUE(has(brisk({"train", "books"}).err, "a folder without a job.json"));
}

TEST_F(Typing, ADryRunChecksEverythingAndLeavesNothing) {
  brisk({"--version"});  // the test's own files are there from now on
  const std::string before = listing(folder.path());
  const Outcome outcome =
      brisk({"train", "job.json", "--output", "out/run", "--dry-run", "--set", "data.cache_dir=" + folder / "cache"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_TRUE(has(outcome.err, "dry run: the job, its data and its memory are fine")) << outcome.err;
  EXPECT_FALSE(has(outcome.err, "step 1/"));
  EXPECT_FALSE(std::filesystem::exists(folder / "out"));
  std::filesystem::remove_all(folder / "cache");
  EXPECT_EQ(listing(folder.path()), before);
  EXPECT_EQ(brisk({"train", "job.json", "--dry-run", "--data", "nowhere.txt"}).exit_code, 2);
  ASSERT_EQ(brisk({"train", "job.json", "--output", "run"}).exit_code, 0);
  const std::string run = listing(folder / "run");
  EXPECT_EQ(brisk({"train", "run", "--resume", "--stop", "9u", "--dry-run"}).exit_code, 0);
  EXPECT_EQ(listing(folder / "run"), run);
}

TEST_F(Typing, OverwriteReplacesARunAndNothingElse) {
  ASSERT_EQ(brisk({"train", "job.json", "--output", "run"}).exit_code, 0);
  EXPECT_TRUE(has(brisk({"train", "job.json", "--output", "run"}).err, "--overwrite to replace it"));
  write_text(folder / "run/thesis.txt", "mine");
  const std::string before = listing(folder / "run");
  const Outcome refused = brisk({"train", "job.json", "--output", "run", "--overwrite"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_TRUE(has(refused.err, "'thesis.txt' in it is no file of a run")) << refused.err;
  EXPECT_EQ(listing(folder / "run"), before);
  std::filesystem::remove(folder / "run/thesis.txt");
  EXPECT_EQ(brisk({"train", "job.json", "--output", "run", "--overwrite", "--data", "nowhere.txt"}).exit_code, 2);
  EXPECT_EQ(steps_of("run"), 6) << "the old run is there until the new one is ready";
  EXPECT_TRUE(has(brisk({"train", "job.json", "--output", "run", "--overwrite", "--set", "model.from=run"}).err,
                  "in the run that --overwrite would replace"));
  EXPECT_EQ(brisk({"train", "job.json", "--output", "run", "--overwrite", "--stop", "3u"}).exit_code, 0);
  EXPECT_EQ(steps_of("run"), 3);
  EXPECT_EQ(checkpoints_of(folder / "run").size(), 1u);
  // A folder that the run only has a link to is not its own.
  std::filesystem::rename(folder / "run/checkpoints", folder / "elsewhere");
  std::filesystem::create_directory_symlink(folder / "elsewhere", folder / "run/checkpoints");
  EXPECT_TRUE(has(brisk({"train", "job.json", "--output", "run", "--overwrite"}).err, "a link to another folder"));
}

TEST_F(Typing, GenerateTakesPromptsFromFilesStopsAndSamples) {
  ASSERT_EQ(brisk({"train", "job.json", "--output", "run"}).exit_code, 0);
  const auto lines_of = [&](std::vector<std::string> more, const ProcessOptions& options = {}) {
    std::vector<std::string> command = {"generate", "run", "--json", "--threads", "1", "--max-tokens", "20"};
    command.insert(command.end(), more.begin(), more.end());
    const Outcome outcome = brisk(command, options);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    std::vector<Json> lines;
    std::istringstream text(outcome.out);
    for (std::string line; std::getline(text, line);) lines.push_back(Json::parse(line));
    return lines;
  };
  const std::vector<Json> three = lines_of({"--prompt", "The dog", "--num-samples", "3", "--ignore-eos"});
  ASSERT_EQ(three.size(), 3u);
  EXPECT_NE(three[0]["text"], three[1]["text"]);
  EXPECT_EQ(three[2]["seed"], 3);
  for (const Json& line : three) EXPECT_EQ(line["new_tokens"], 20);
  write_text(folder / "prompt.txt", "The dog\n");
  EXPECT_EQ(lines_of({"--prompt-file", "prompt.txt", "--ignore-eos"})[0]["text"], three[0]["text"]);
  EXPECT_EQ(lines_of({"--prompt-file", "-", "--ignore-eos"}, {.input = "The dog\n"})[0]["text"], three[0]["text"]);
  const std::string text = three[0]["text"], stop = text.substr(text.size() / 2, 2);
  const Json stopped = lines_of({"--prompt", "The dog", "--ignore-eos", "--stop", stop})[0];
  EXPECT_EQ(stopped["ended"], "stop");
  EXPECT_EQ(stopped["text"], text.substr(0, text.find(stop, 7)));
  const Outcome long_prompt = brisk({"generate", "run", "--prompt", english_like_text(10), "--max-tokens", "2"});
  EXPECT_TRUE(has(long_prompt.err, "the model reads 32 here: the first ")) << long_prompt.err;
}

TEST_F(Typing, ExportNamesItsOutputOnce) {
  const std::string help = brisk({"export", "--help"}).out;
  EXPECT_EQ(help.find("output"), help.rfind("output", help.find("Examples"))) << help;
  EXPECT_TRUE(has(brisk({"export", "run", "--format", "gguf"}).err, "--output is required"));
  EXPECT_TRUE(has(brisk({"export", "run", "--format", "gguf", "--output", "a", "b"}).err, "named by --output"));
}

class Examples : public ::testing::TestWithParam<const char*> {};

TEST_P(Examples, PassTheSmokeTest) {
  TemporaryFolder folder;
  const std::string path = std::string(BRISK_REPOSITORY) + "/examples/" + GetParam() + ".json";
  const bool table = read_text(path).find("\"classify\"") != std::string::npos;
  std::string rows = "text,label\n";
  for (int i = 0; i < 60; ++i) rows += i % 2 == 0 ? "a fine film with a good end,pos\n" : "a dull and poor one,neg\n";
  write_text(folder / "data.csv", rows);
  write_text(folder / "data.txt", english_like_text(1500));
  const Outcome outcome = run_brisk({"train", path, "--data", table ? "data.csv" : "data.txt", "--smoke-test"}, folder,
                                    {.environment = {"TMPDIR=" + folder.path()}});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
}

// The others start from a model of Hugging Face's.
INSTANTIATE_TEST_SUITE_P(Each, Examples,
                         testing::Values("tiny", "prototype", "quality", "production", "demo", "demo-classify", "mu-6",
                                         "mu-12", "mu-24"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace brisk::program
