// What a run leaves for those who watch it: samples, ledger, events, the report and the comparison.
#include <gtest/gtest.h>
#include <signal.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <sstream>

#include "program/support/small_job.h"

namespace brisk::program {
namespace {

std::vector<Json> json_lines_of(const std::string& path) {
  std::vector<Json> lines;
  std::istringstream text(read_text(path));
  for (std::string line; std::getline(text, line);) lines.push_back(Json::parse(line));
  return lines;
}

Json watched_job() {
  Json job = small_job();
  job["training"]["max_steps"] = 40;
  job["training"]["eval_steps"] = 10;
  job["training"]["save_steps"] = 10;
  job["training"]["logging_steps"] = 5;
  job["training"]["sample_prompts"] = {"The queen", "In the \"<morning>\""};
  job["training"]["sample_tokens"] = 12;
  job["training"]["histogram_steps"] = 20;
  return job;
}

std::string event_files(const std::string& run) {
  std::string bytes;
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(run + "/tensorboard")) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  for (const auto& path : paths) bytes += read_text(path);
  return bytes;
}

size_t times_in(const std::string& text, const std::string& part) {
  size_t times = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++times;
  return times;
}

TEST(Watching, ChangesNoBitOfTheTraining) {
  TemporaryFolder folder;
  const Json watched = watched_job();
  Json alone = watched;
  for (const char* key : {"sample_prompts", "sample_tokens", "histogram_steps"}) alone["training"].erase(key);
  alone["training"]["tensorboard"] = false;
  train_small(folder, watched, "watched");
  train_small(folder, alone, "alone");
  EXPECT_EQ(curve_of(folder / "watched"), curve_of(folder / "alone"));
  EXPECT_EQ(last_model_bytes(folder / "watched"), last_model_bytes(folder / "alone"));
  EXPECT_FALSE(std::filesystem::exists(folder / "alone/tensorboard"));
  EXPECT_FALSE(std::filesystem::exists(folder / "alone/samples.jsonl"));
}

TEST(Watching, SamplesEachPromptAtEachEvaluation) {
  TemporaryFolder folder;
  const Outcome outcome = train_small(folder, watched_job(), "run");
  const std::vector<Json> samples = json_lines_of(folder / "run/samples.jsonl");
  ASSERT_EQ(samples.size(), 8u);
  for (size_t i = 0; i < samples.size(); ++i) {
    EXPECT_EQ(samples[i]["step"], 10 * (1 + i / 2));
    const std::string prompt = i % 2 == 0 ? "The queen" : "In the \"<morning>\"";
    EXPECT_EQ(samples[i]["prompt"], prompt);
    EXPECT_TRUE(samples[i]["text"].get<std::string>().starts_with(prompt)) << samples[i];
    EXPECT_LE(samples[i]["tokens"], 12);
  }
  EXPECT_NE(samples[0]["text"], samples[6]["text"]) << "it has learned something";
  EXPECT_EQ(times_in(outcome.err, "sample: The queen"), 4u) << outcome.err;
  train_small(folder, watched_job(), "again");
  EXPECT_EQ(json_lines_of(folder / "again/samples.jsonl"), samples);
}

TEST(Watching, SamplesAreDrawnAsTheJobSays) {
  TemporaryFolder folder;
  const auto samples_with = [&](const std::string& name, const std::vector<std::pair<std::string, double>>& settings) {
    Json job = watched_job();
    job["training"]["sample_tokens"] = 30;
    for (const auto& [key, value] : settings) job["training"]["sample_" + key] = value;
    train_small(folder, job, name);
    std::vector<std::string> texts;
    for (const Json& line : json_lines_of(folder / name + "/samples.jsonl")) texts.push_back(line["text"]);
    return texts;
  };
  const std::vector<std::string> likeliest = samples_with("likeliest", {{"temperature", 0}});
  EXPECT_EQ(samples_with("one", {{"top_k", 1}}), likeliest);
  EXPECT_EQ(samples_with("nucleus", {{"top_p", 1e-6}, {"top_k", 0}}), likeliest);
  EXPECT_NE(samples_with("default", {}), likeliest);
  EXPECT_NE(samples_with("penalty", {{"temperature", 0}, {"repetition_penalty", 3}}), likeliest);
}

TEST(Watching, WithoutAPromptASampleStartsFromNothing) {
  TemporaryFolder folder;
  Json job = small_job();
  job["training"]["sample_tokens"] = 5;
  job["data"]["validation_fraction"] = 0;  // samples come all the same
  train_small(folder, job, "run");
  const std::vector<Json> samples = json_lines_of(folder / "run/samples.jsonl");
  ASSERT_EQ(samples.size(), 1u);
  EXPECT_EQ(samples[0]["prompt"], "");
}

TEST(Watching, TheLedgerOfTheStretchesIsThatOfTheRun) {
  TemporaryFolder folder;
  train_small(folder, watched_job(), "run");
  double seconds = 0, phases = 0;
  int64_t steps = 0;
  const std::vector<Json> lines = json_lines_of(folder / "run/ledger.jsonl");
  EXPECT_EQ(lines.front()["kind"], "start");
  EXPECT_EQ(lines.back()["kind"], "end");
  EXPECT_EQ(lines.back()["ended"], "finished");
  for (const Json& line : lines) {
    if (line["kind"] != "stretch") continue;
    seconds += line["seconds"].get<double>();
    steps += line["steps"].get<int64_t>();
    for (const auto& [phase, value] : line["ledger"].items()) phases += value.get<double>();
  }
  EXPECT_EQ(steps, 40);
  EXPECT_NEAR(phases, seconds, 1e-6);
  EXPECT_NEAR(seconds, read_json(folder / "run/summary.json")["wall_seconds"].get<double>(), 0.05);
}

TEST(Watching, AResumedRunHasEachStepOnceEverywhere) {
  TemporaryFolder folder;
  write_text(folder / "text.txt", english_like_text(60));
  Json job = watched_job();
  train_small(folder, job, "reference");
  job["training"]["max_steps"] = 40;
  write_job(folder, job);
  // A run killed after step 20's checkpoint, with lines beyond it: as if it had been at step 40 then.
  std::filesystem::copy(folder / "reference", folder / "run", std::filesystem::copy_options::recursive);
  for (const std::string& name : checkpoints_of(folder / "run")) {
    if (name > "step-00000030") std::filesystem::remove_all(folder / "run/checkpoints/" + name);
  }
  const Outcome outcome = run_brisk({"train", "job.json", "--output", "run", "--resume"}, folder);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(curve_of(folder / "run"), curve_of(folder / "reference"));
  EXPECT_EQ(json_lines_of(folder / "run/samples.jsonl"), json_lines_of(folder / "reference/samples.jsonl"));
  const std::string events = event_files(folder / "run"), expected = event_files(folder / "reference");
  for (const char* tag : {"loss/train", "loss/validation", "learning_rate", "samples/1 The queen",
                          "gradients/layers.0.", "speed/step_ms"}) {
    EXPECT_GT(times_in(expected, tag), 0u) << tag;
    EXPECT_EQ(times_in(events, tag), times_in(expected, tag)) << tag;
  }
  int64_t steps = 0;
  for (const Json& line : json_lines_of(folder / "run/ledger.jsonl")) {
    if (line["kind"] == "stretch") steps += line["steps"].get<int64_t>();
  }
  EXPECT_EQ(steps, 40);
  double before = 0;
  for (const Json& line : metrics_of(folder / "run")) {
    EXPECT_GE(line["seconds"].get<double>(), before) << "time goes on where it stood";
    before = line["seconds"].get<double>();
  }
}

TEST(Watching, SettingsOfItMayChangeOnResume) {
  TemporaryFolder folder;
  Json job = watched_job();
  train_small(folder, job, "run");
  job["training"]["sample_prompts"] = {"Another"};
  job["training"]["tensorboard"] = false;
  job["training"]["histogram_steps"] = 0;
  write_job(folder, job);
  EXPECT_EQ(run_brisk({"train", "job.json", "--output", "run", "--resume"}, folder).exit_code, 0);
}

TEST(Report, IsAPageInTheRunDirectoryOrWhereItIsWanted) {
  TemporaryFolder folder;
  train_small(folder, watched_job(), "run");
  const Outcome outcome = run_brisk({"report", "run"}, folder);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "run/report.html\n");
  const std::string page = read_text(folder / "run/report.html");
  for (const char* part : {"finished", "best validation loss", "Learning rate", "Gradient norm", "Tokens per second",
                           "Where the time went", "In the &quot;&lt;morning&gt;&quot;", "training.batch_size"}) {
    EXPECT_NE(page.find(part), std::string::npos) << part;
  }
  EXPECT_EQ(run_brisk({"report", "run", "--output", "here.html"}, folder).exit_code, 0);
  EXPECT_EQ(read_text(folder / "here.html"), page);
  const Json figures = Json::parse(run_brisk({"report", "run", "--json"}, folder).out);
  EXPECT_EQ(figures["step"], 40);
  EXPECT_EQ(figures["best_validation_loss"], read_json(folder / "run/summary.json")["best"]["validation_loss"]);
}

TEST(Report, OfARunThatIsGoingOnSaysSo) {
  TemporaryFolder folder;
  write_text(folder / "text.txt", english_like_text(60));
  Json job = watched_job();
  job["training"]["max_steps"] = 1000000;
  write_job(folder, job);
  Process process({"train", "job.json", "--output", "run"}, folder);
  ASSERT_TRUE(process.wait_for("step 20/"));
  const Json running = Json::parse(run_brisk({"report", "run", "--json"}, folder).out);
  EXPECT_EQ(running["status"], "running");
  EXPECT_GE(running["step"], 15);
  process.send(SIGKILL);
  process.finish();
  EXPECT_EQ(Json::parse(run_brisk({"report", "run", "--json"}, folder).out)["status"], "unfinished");
  EXPECT_EQ(run_brisk({"report", "run"}, folder).exit_code, 0);
}

TEST(Report, RefusesWhatIsNoRunAndAPageThatCannotBeWritten) {
  TemporaryFolder folder;
  std::filesystem::create_directory(folder / "empty");
  const Outcome none = run_brisk({"report", "empty"}, folder);
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_NE(none.err.find("empty: not a run directory"), std::string::npos) << none.err;
  const Outcome missing = run_brisk({"compare", "empty", "no-such"}, folder);
  EXPECT_EQ(missing.exit_code, 2);
  Json job = small_job();
  job["training"]["max_steps"] = 2;
  train_small(folder, job, "run");
  const Outcome nowhere = run_brisk({"report", "run", "--output", "no/such/folder.html"}, folder);
  EXPECT_EQ(nowhere.exit_code, 2);
  EXPECT_NE(nowhere.err.find("no/such/folder.html"), std::string::npos) << nowhere.err;
}

TEST(Compare, PutsRunsBesideEachOther) {
  TemporaryFolder folder;
  Json job = watched_job();
  train_small(folder, job, "runs-a");
  job["training"]["learning_rate"] = 1e-4;
  train_small(folder, job, "runs-b");
  const Outcome outcome = run_brisk({"compare", "runs-a", "runs-b", "--html", "c.html"}, folder);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  for (const char* part : {"runs-a", "runs-b", "best loss", "training.learning_rate", "0.003", "0.0001"}) {
    EXPECT_NE(outcome.out.find(part), std::string::npos) << outcome.out;
  }
  EXPECT_EQ(outcome.out.find("batch_size"), std::string::npos);
  EXPECT_NE(read_text(folder / "c.html").find("Settings that differ"), std::string::npos);
  const Json figures = Json::parse(run_brisk({"compare", "runs-a", "runs-b", "--json"}, folder).out);
  EXPECT_LT(figures["runs"][0]["best_validation_loss"], figures["runs"][1]["best_validation_loss"]);
  EXPECT_EQ(figures["differences"]["training.learning_rate"], Json({0.003, 0.0001}));
}

TEST(Compare, OfTwoTokenizersGoesByBitsPerByte) {
  TemporaryFolder folder;
  Json job = small_job();
  job["training"]["tensorboard"] = true;
  job["model"]["vocab_size"] = 258;
  train_small(folder, job, "small");
  job["model"]["vocab_size"] = 420;
  train_small(folder, job, "large");
  const Json small = read_json(folder / "small/summary.json"), large = read_json(folder / "large/summary.json");
  EXPECT_LT(small["validation_loss"], large["validation_loss"]);
  EXPECT_GT(small["validation_bits_per_byte"], large["validation_bits_per_byte"]);
  EXPECT_EQ(small["validation_fingerprint"], large["validation_fingerprint"]);
  EXPECT_NE(small["tokenizer_fingerprint"], large["tokenizer_fingerprint"]);
  EXPECT_GT(times_in(event_files(folder / "small"), "bits_per_byte/validation"), 0u);
  const Outcome outcome = run_brisk({"compare", "small", "large"}, folder);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  for (const char* part :
       {"warning: the tokenizers differ", "time to bits per byte", "sequences/s", "time per epoch"}) {
    EXPECT_TRUE(has(outcome.out, part)) << part << "\n" << outcome.out;
  }
  const std::string best = outcome.out.substr(outcome.out.find("best bits per byte"), 60);
  EXPECT_EQ(best.substr(0, best.find('*')).find('\n'), std::string::npos) << outcome.out;
  // What eval says of a text is its loss in bits over the text's bytes; the ends of its lines are no text.
  const std::string text = english_like_text(20, 7);
  write_text(folder / "other.txt", text);
  const Json figures = Json::parse(run_brisk({"eval", "small", "--data", "other.txt", "--json"}, folder).out);
  EXPECT_NEAR(figures["bits_per_byte"].get<double>(),
              figures["loss"].get<double>() * figures["tokens"].get<double>() / std::log(2) /
                  static_cast<double>(text.size() - 20),
              1e-9);
}

TEST(Compare, OfOtherValidationDataCrownsNobody) {
  TemporaryFolder folder;
  Json job = small_job();
  train_small(folder, job, "one");
  job["training"]["seed"] = 2;  // other documents are set aside
  train_small(folder, job, "two");
  const Outcome outcome = run_brisk({"compare", "one", "two"}, folder);
  EXPECT_TRUE(has(outcome.out, "warning: the validation data differ")) << outcome.out;
  EXPECT_FALSE(has(outcome.out, "time to ")) << outcome.out;
  const std::string loss = outcome.out.substr(outcome.out.find("best loss"));
  EXPECT_FALSE(has(loss.substr(0, loss.find('\n')), "*")) << outcome.out;
}

}  // namespace
}  // namespace brisk::program
