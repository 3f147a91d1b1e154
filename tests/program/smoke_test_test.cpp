// `brisk train --smoke-test`: the whole path in seconds.
#include <gtest/gtest.h>
#include <signal.h>
#include <zlib.h>

#include "program/support/small_job.h"

namespace brisk::program {
namespace {

class SmokeTest : public ::testing::Test {
 protected:
  SmokeTest() {
    std::filesystem::create_directory(folder / "tmp");
    write_text(folder / "text.txt", english_like_text(5000));  // more than the subset
    job = small_job();
    job["model"] = {{"d_model", 96}, {"num_layers", 3}, {"vocab_size", 3000}};
    job["training"] = {{"stop", "3h"}, {"max_length", 128}, {"batch_size", "auto"}};
  }

  Outcome smoke(std::vector<std::string> more = {}) {
    write_job(folder, job);
    std::vector<std::string> arguments = {"train", "job.json", "--smoke-test"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_brisk(arguments, folder, {.environment = {"TMPDIR=" + folder / "tmp"}});
  }

  TemporaryFolder folder;
  Json job;
};

TEST_F(SmokeTest, GoesThroughEveryStageAndLeavesNothing) {
  write_job(folder, job);
  run_brisk({"--version"}, folder);  // the test's own files are there from now on
  const std::string before = listing(folder.path());
  const Outcome outcome = smoke();
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  for (const char* stage :
       {"memory ", "data ", "model ", "train ", "kill ", "resume ", "evaluate ", "generate ", "export "})
    EXPECT_NE(outcome.err.find(std::string("  ") + stage), std::string::npos) << stage << outcome.err;
  EXPECT_NE(outcome.err.find("SIGKILL after the checkpoint of step "), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("to the bit"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("3 steps of "), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("validation loss "), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("training.stop 3h should be about "), std::string::npos) << outcome.err;
  EXPECT_EQ(listing(folder.path()), before);
}

TEST_F(SmokeTest, SaysThatThereIsNoPlaceForItsFiles) {
  write_job(folder, job);
  const Outcome outcome =
      run_brisk({"train", "job.json", "--smoke-test"}, folder, {.environment = {"TMPDIR=" + folder / "missing"}});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_TRUE(has(outcome.err, folder / "missing") && has(outcome.err, "name one with TMPDIR=DIR")) << outcome.err;
}

TEST_F(SmokeTest, InterruptedLeavesNothingEither) {
  write_job(folder, job);
  Process process({"train", "job.json", "--smoke-test"}, folder, {.environment = {"TMPDIR=" + folder / "tmp"}});
  ASSERT_TRUE(process.wait_for("  data "));
  process.send(SIGINT);
  const Outcome outcome = process.finish();
  EXPECT_EQ(outcome.exit_code, 130) << outcome.err;
  EXPECT_TRUE(std::filesystem::is_empty(folder / "tmp")) << listing(folder / "tmp");
}

TEST_F(SmokeTest, RunsASmallLlamaOnLinesOfJson) {
  std::string lines;
  for (int i = 0; i < 300; ++i) lines += Json{{"body", english_like_text(2, static_cast<uint64_t>(i))}}.dump() + "\n";
  write_text(folder / "text.jsonl", lines);
  job["model"] = {{"type", "llama"}, {"d_model", 24}, {"num_heads", 4}, {"num_kv_heads", 2}, {"num_layers", 1}};
  job["data"] = {{"train", {"text.jsonl"}}, {"text_field", "body"}};
  const Outcome outcome = smoke();
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
}

TEST_F(SmokeTest, FineTunesAStandInForTheModelToStartFrom) {
  train_small(folder, small_job(), "base");
  job["model"] = {{"from", "base"}};
  job["training"].erase("max_length");
  job["training"]["lora_rank"] = 4;
  const Outcome outcome = smoke();
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("to start from in place of base"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("to the bit"), std::string::npos) << outcome.err;
}

TEST_F(SmokeTest, PassesAJobWhoseShapeNoOtherProgramHas) {
  job["model"] = {{"d_model", 32}, {"num_layers", 1}, {"positions", "rotary"}};
  const Outcome outcome = smoke();
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("not in Hugging Face format: "), std::string::npos) << outcome.err;
}

TEST_F(SmokeTest, ReadsFilesOfAnyNameAndPredictsTheWholeRun) {
  job["training"].erase("stop");
  job["training"]["num_epochs"] = 2;
  for (const char* name : {"book.md", "README", "val.de"}) write_text(folder / name, english_like_text(600));
  const std::string packed = folder / "train.de.gz";
  gzFile file = ::gzopen(packed.c_str(), "wb");
  const std::string text = english_like_text(600);
  ::gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
  ::gzclose(file);
  for (const char* name : {"book.md", "README", "train.de.gz"}) {
    job["data"] = {{"train", {name}}, {"validation", {"val.de"}}};
    const Outcome outcome = smoke();
    EXPECT_EQ(outcome.exit_code, 0) << name << outcome.err;
    EXPECT_NE(outcome.err.find("the whole run should take about "), std::string::npos) << outcome.err;
  }
}

TEST_F(SmokeTest, DoesNotTakeItsOwnSmallSubsetForTheUsersData) {
  std::string lines;
  for (int i = 0; i < 12; ++i) lines += "the same line of words again and again\n\n";
  write_text(folder / "text.txt", lines + english_like_text(60));
  job["model"]["vocab_size"] = 9000;  // more than so little text supports
  const Outcome outcome = smoke();
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.err.find("warning"), std::string::npos) << outcome.err;
}

TEST_F(SmokeTest, FindsADamagedModelToStartFrom) {
  train_small(folder, small_job(), "base");
  const std::string weights =
      folder / "base/checkpoints/" + checkpoints_of(folder / "base").back() + "/model.safetensors";
  std::string bytes = read_text(weights);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  write_text(weights, bytes);
  job["model"] = {{"from", "base"}};
  job["training"].erase("max_length");
  const Outcome outcome = smoke();
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_NE(outcome.err.find("smoke test: model failed: base/checkpoints/"), std::string::npos) << outcome.err;
}

TEST_F(SmokeTest, NamesTheStageThatFailsAndItsError) {
  write_text(folder / "text.jsonl", "{\"text\": \"one\"}\n{\"body\": \"two\"}\n");
  job["data"] = {{"train", {"text.jsonl"}}};
  const Outcome outcome = smoke();
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_NE(outcome.err.find("smoke test: model failed: "), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("text_field"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("text.jsonl: line 2"), std::string::npos) << "the user's file: " << outcome.err;
  EXPECT_EQ(outcome.err.find("brisk-smoke"), std::string::npos) << "none of our own: " << outcome.err;
  EXPECT_EQ(listing(folder / "tmp"), "");

  job["data"] = {{"train", {"nowhere.txt"}}};
  const Outcome missing = smoke();
  EXPECT_EQ(missing.exit_code, 2);
  EXPECT_NE(missing.err.find("smoke test: data failed: "), std::string::npos) << missing.err;
  EXPECT_NE(missing.err.find("nowhere.txt"), std::string::npos) << missing.err;

  job["model"]["d_model"] = 65536;
  job["model"]["num_layers"] = 1000;
  const Outcome large = smoke({"--data", "text.txt"});
  EXPECT_EQ(large.exit_code, 2);
  EXPECT_NE(large.err.find("smoke test: memory failed: "), std::string::npos) << large.err;
}

}  // namespace
}  // namespace brisk::program
