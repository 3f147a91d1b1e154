// A run that was interrupted or killed goes on where it stood, and nothing about its curve shows it.
#include <gtest/gtest.h>
#include <signal.h>

#include <cmath>
#include <filesystem>
#include <random>
#include <sstream>

#include "program/support/small_job.h"

namespace brisk::program {
namespace {

// All that a checkpoint must bring back: dropout, sums of a log line that is not finished, evaluations, the best model.
Json job_with_everything() {
  Json job = small_job();
  job["model"]["dropout"] = 0.1;
  job["training"]["max_steps"] = 120;
  job["training"]["learning_rate"] = 0.02;
  job["training"]["lr_scheduler"] = "constant";
  job["training"]["logging_steps"] = 3;
  job["training"]["eval_steps"] = 17;
  job["training"]["save_steps"] = 13;
  job["training"]["weight_decay"] = 0.1;
  return job;
}

void expect_same_run(const std::string& run, const std::string& reference) {
  const std::vector<Json> curve = curve_of(run), expected = curve_of(reference);
  ASSERT_EQ(curve.size(), expected.size());
  for (size_t i = 0; i < curve.size(); ++i) ASSERT_EQ(curve[i], expected[i]);
  EXPECT_EQ(checkpoints_of(run).back(), checkpoints_of(reference).back());
  EXPECT_EQ(last_model_bytes(run), last_model_bytes(reference));
  Json summary = read_json(run + "/summary.json"), other = read_json(reference + "/summary.json");
  for (Json* json : {&summary, &other}) (*json)["best"].erase("seconds");
  for (const char* key : {"step", "epoch", "tokens", "loss", "validation_loss", "best", "parameters", "ended"}) {
    EXPECT_EQ(summary[key], other[key]) << key;
  }
}

// The command that the program says to go on with, without "brisk" itself.
std::vector<std::string> advised_command(const std::string& talk) {
  const size_t begin = talk.rfind("  brisk train ");
  if (begin == std::string::npos) return {};
  std::vector<std::string> words = words_of(talk.substr(begin, talk.find('\n', begin + 2) - begin));
  words.erase(words.begin());
  return words;
}

class Resume : public ::testing::Test {
 protected:
  // So little text that it is learned by heart: the validation loss rises again, and the best model is not the last.
  Resume() { write_text(folder / "text.txt", english_like_text(24)); }

  Outcome resume(const std::string& run, std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {"train", "job.json", "--output", run, "--resume"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_brisk(arguments, folder);
  }

  // Starts a run and stops it with a signal; it has saved a checkpoint by then.
  void interrupt_a_run(const Json& job, const std::string& run) {
    write_job(folder, job);
    Process process({"train", "job.json", "--output", run}, folder);
    ASSERT_TRUE(process.wait_for("step 9/"));
    process.send(SIGTERM);
    const Outcome outcome = process.finish();
    ASSERT_EQ(outcome.exit_code, 130) << outcome.err;
  }

  Json long_job() {
    Json job = job_with_everything();
    job["training"]["max_steps"] = 100000;
    return job;
  }

  TemporaryFolder folder;
};

class ResumeOfEachKind : public Resume, public testing::WithParamInterface<std::tuple<const char*, const char*>> {};

TEST_P(ResumeOfEachKind, AfterInterruptionsTheCurveIsThatOfARunWithoutThem) {
  const auto& [precision, optimizer] = GetParam();
  Json job = job_with_everything();
  job["training"]["precision"] = precision;
  job["training"]["optimizer"] = optimizer;
  job["training"]["threads"] = std::string(precision) == "fp32" ? 2 : 1;
  train_small(folder, job, "reference");
  const Json reference = read_json(folder / "reference/summary.json");
  EXPECT_LT(reference["best"]["step"], 120) << reference.dump(2);

  // --data and --set stand on the command line, and the advice must work without them.
  job["training"].erase("learning_rate");
  job.erase("data");
  write_job(folder, job);
  std::vector<std::string> command = {
      "train", "job.json",           "--data",   "text.txt", "--set", "training.learning_rate=0.02",
      "--set", "data.document=line", "--output", "run"};
  std::mt19937_64 random(7);
  int interruptions = 0;
  for (int64_t step = 3 * (1 + random() % 5); step < 110; step += 3 * (3 + random() % 6)) {
    Process process(command, folder);
    if (!process.wait_for("step " + std::to_string(step) + "/")) break;
    process.send(interruptions % 2 == 0 ? SIGINT : SIGTERM);
    const Outcome outcome = process.finish();
    if (outcome.exit_code == 0) break;  // it was faster than the signal
    ASSERT_EQ(outcome.exit_code, 130) << outcome.err;
    ++interruptions;
    EXPECT_EQ(read_json(folder / "run/summary.json")["ended"], "interrupted");
    command = advised_command(outcome.err);
    ASSERT_FALSE(command.empty()) << outcome.err;
  }
  EXPECT_GE(interruptions, 2);
  const Outcome outcome = run_brisk(command, folder);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  expect_same_run(folder / "run", folder / "reference");
}

INSTANTIATE_TEST_SUITE_P(Kinds, ResumeOfEachKind,
                         testing::Combine(testing::Values("fp32", "bf16"), testing::Values("muon", "adamw")),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param)) + "_" + std::get<1>(info.param);
                         });

class ResumeOnEachDevice : public Resume, public testing::WithParamInterface<const char*> {};

TEST_P(ResumeOnEachDevice, GoesOnWithTheMicroBatchThatWasMeasured) {
  Json job = long_job();
  job["device"] = GetParam();
  job["training"]["batch_size"] = "auto";
  write_job(folder, job);
  const auto run_until = [&](const std::string& line, std::vector<std::string> more) {
    std::vector<std::string> arguments = {"train", "job.json", "--output", "run"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    Process process(arguments, folder);
    if (process.wait_for(line)) process.send(SIGINT);
    return process.finish();
  };
  const auto choices = [&] {
    const std::string run = folder / "run";
    return read_json(run + "/checkpoints/" + checkpoints_of(run).back() + "/state.json")["choices"];
  };
  const Outcome first = run_until("step 9/", {});
  if (first.err.find("brisk: device: ") != std::string::npos) GTEST_SKIP() << "no NVIDIA GPU to run this on";
  ASSERT_EQ(first.exit_code, 130) << first.err;
  const Json measured = choices();
  const std::string said = "micro-batch: " + measured["micro_batch_tokens"].dump() + " tokens, the fastest measured";
  EXPECT_NE(first.err.find(said), std::string::npos) << said << "\n" << first.err;
  const Outcome resumed = run_until("step 60/", {"--resume"});
  ASSERT_EQ(resumed.exit_code, 130) << resumed.err;
  EXPECT_EQ(resumed.err.find("micro-batch: "), std::string::npos) << resumed.err;
  EXPECT_EQ(choices(), measured);
}

INSTANTIATE_TEST_SUITE_P(Devices, ResumeOnEachDevice, testing::Values("cpu", "cuda"),
                         [](const auto& info) { return info.param; });

TEST_F(Resume, OfAFinishedRunChangesNothing) {
  const Json job = job_with_everything();
  train_small(folder, job, "run");
  std::filesystem::copy(folder / "run", folder / "before", std::filesystem::copy_options::recursive);
  write_job(folder, job);
  const Outcome outcome = resume("run");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  expect_same_run(folder / "run", folder / "before");
  // The time and the speed are those of the training, not of the process that found nothing to do.
  EXPECT_EQ(read_text(folder / "run/summary.json"), read_text(folder / "before/summary.json"));
  EXPECT_NE(outcome.err.find("nothing to do"), std::string::npos) << outcome.err;
  const Outcome reported = run_brisk({"report", "run", "--json"}, folder);
  EXPECT_EQ(Json::parse(reported.out)["status"], "finished") << reported.out;
}

TEST_F(Resume, SaysSoWhereTheBestModelIsGone) {
  const Json job = job_with_everything();
  const Outcome trained = train_small(folder, job, "run");
  EXPECT_NE(trained.err.find("loaded the best model"), std::string::npos) << trained.err;
  ASSERT_EQ(checkpoints_of(folder / "run").size(), 3U);  // the best, and the last two
  std::filesystem::remove_all(folder / "run/checkpoints/" + checkpoints_of(folder / "run").front());
  write_job(folder, job);
  const Outcome outcome = resume("run");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.err.find("loaded the best model"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("is gone; the model is that of step 120"), std::string::npos) << outcome.err;
}

TEST_F(Resume, OfACheckpointThatWasRenamedIsRefused) {
  const Json job = job_with_everything();
  train_small(folder, job, "run");
  const std::string places = folder / "run/checkpoints/", name = checkpoints_of(folder / "run").back();
  std::filesystem::rename(places + name, places + "step-99999999");
  write_job(folder, job);
  const Outcome outcome = resume("run");
  EXPECT_EQ(outcome.exit_code, 2) << outcome.err;
  EXPECT_TRUE(has(outcome.err, "its name says step 99999999") && has(outcome.err, "rename it to " + name))
      << outcome.err;
}

TEST_F(Resume, FindsTheTextWhereverItLies) {
  const Json job = job_with_everything();
  train_small(folder, job, "reference");
  interrupt_a_run(job, "run");
  std::filesystem::rename(folder / "text.txt", folder / "moved.txt");
  const Outcome outcome = resume("run", {"--data", "moved.txt"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  expect_same_run(folder / "run", folder / "reference");
}

TEST_F(Resume, IsAdvisedInWordsThatAShellReadsBack) {
  write_job(folder, long_job());
  Process process({"train", "job.json", "--output", "a run's"}, folder);
  ASSERT_TRUE(process.wait_for("step 9/"));
  process.send(SIGINT);
  const Outcome outcome = process.finish();
  EXPECT_NE(outcome.err.find(R"(brisk train 'a run'\''s' --resume)"), std::string::npos) << outcome.err;
}

TEST_F(Resume, TheFirstCtrlCIsAnsweredBeforeTheStepEndsAndTheSecondEndsIt) {
  Json job = job_with_everything();
  job["training"]["save_steps"] = 7;
  train_small(folder, job, "reference");
  Json slow = long_job();
  write_text(folder / "long.txt", english_like_text(20000));
  slow["data"]["train"] = {"long.txt"};
  slow["training"]["batch_size"] = 16384;  // seconds a step
  write_job(folder, slow);
  Process first({"train", "job.json", "--output", "slow"}, folder);
  ASSERT_TRUE(first.wait_for("a checkpoint every"));
  first.sleep(0.5);
  first.send(SIGINT);
  ASSERT_TRUE(first.wait_for("a second Ctrl-C ends it at once"));
  first.send(SIGINT);
  const Outcome ended = first.finish();
  EXPECT_EQ(ended.ended_by, SIGINT) << ended.exit_code << ended.err;
  EXPECT_FALSE(has(ended.err, "interrupted: everything is saved")) << ended.err;

  // In the middle of a run nothing is lost by it but what was trained since the last checkpoint.
  write_job(folder, job);
  Process second({"train", "job.json", "--output", "run"}, folder);
  ASSERT_TRUE(second.wait_for("step 30/"));
  second.send(SIGINT);
  second.send(SIGINT);
  second.finish();
  const Outcome resumed = resume("run");
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  expect_same_run(folder / "run", folder / "reference");
}

TEST_F(Resume, OfARunThatStoppedEarlyDoesNotTrainOn) {
  Json job = job_with_everything();
  job["training"]["learning_rate"] = 0.2;  // soon too wild to get better
  job["training"]["eval_steps"] = 5;
  job["training"]["early_stopping_patience"] = 3;
  job["training"]["max_steps"] = 1000;
  train_small(folder, job, "run");
  const Json summary = read_json(folder / "run/summary.json");
  ASSERT_EQ(summary["ended"], "early stopping");
  EXPECT_LT(summary["step"], 1000);
  EXPECT_EQ(summary["step"], summary["best"]["step"].get<int64_t>() + 3 * 5);
  write_job(folder, job);
  EXPECT_EQ(resume("run").exit_code, 0);
  EXPECT_EQ(read_json(folder / "run/summary.json")["step"], summary["step"]);
  EXPECT_EQ(read_json(folder / "run/summary.json")["ended"], "early stopping");
}

TEST_F(Resume, IsAskedForWhenTheFolderHoldsARun) {
  interrupt_a_run(long_job(), "run");
  const std::string before = listing(folder / "run");
  const Outcome fresh = run_brisk({"train", "job.json", "--output", "run"}, folder);
  EXPECT_EQ(fresh.exit_code, 2);
  EXPECT_NE(fresh.err.find("--resume"), std::string::npos) << fresh.err;
  EXPECT_EQ(listing(folder / "run"), before);
}

TEST_F(Resume, RefusesSettingsThatWouldChangeTheCurve) {
  interrupt_a_run(long_job(), "run");
  const std::string before = listing(folder / "run");
  for (const auto& [setting, name] : std::vector<std::pair<std::string, std::string>>{
           {"training.learning_rate=0.01", "training.learning_rate"},
           {"training.batch_size=16", "training.batch_size"},
           {"training.optimizer=adamw", "training.optimizer"},
           {"training.muon_learning_rate=1", "training.muon_learning_rate"},
           {"model.dropout=0", "model.dropout"},
           {"model.num_layers=3", "model.num_layers"},
           {"training.seed=2", "training.seed"}}) {
    const Outcome outcome = resume("run", {"--set", setting});
    EXPECT_EQ(outcome.exit_code, 2) << setting << "\n" << outcome.err;
    EXPECT_NE(outcome.err.find(name), std::string::npos) << outcome.err;
    EXPECT_EQ(listing(folder / "run"), before) << setting;
  }
}

TEST_F(Resume, RefusesOtherText) {
  interrupt_a_run(long_job(), "run");
  const std::string before = listing(folder / "run");
  write_text(folder / "text.txt", english_like_text(60, 2));
  const Outcome changed = resume("run");
  EXPECT_EQ(changed.exit_code, 2);
  EXPECT_NE(changed.err.find("data.train"), std::string::npos) << changed.err;
  write_text(folder / "text.txt", english_like_text(60));
  write_text(folder / "more.txt", english_like_text(10, 3));
  const Outcome more = resume("run", {"--data", "text.txt", "more.txt"});
  EXPECT_EQ(more.exit_code, 2);
  EXPECT_NE(more.err.find("data.train"), std::string::npos) << more.err;
  EXPECT_EQ(listing(folder / "run"), before);
}

TEST_F(Resume, AllowsWhatDoesNotTouchTheCurve) {
  Json job = job_with_everything();
  train_small(folder, job, "reference");
  interrupt_a_run(job, "run");
  const Outcome outcome = resume("run", {"--set", "training.save_steps=11", "--set", "training.save_total_limit=3"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(curve_of(folder / "run"), curve_of(folder / "reference"));
}

TEST_F(Resume, WithOtherInstructionsSaysThatTheBitsMayDiffer) {
  Json job = job_with_everything();
  job["training"]["max_steps"] = 30;
  train_small(folder, job, "reference");
  interrupt_a_run(job, "run");
  const Outcome outcome =
      run_brisk({"train", "job.json", "--output", "run", "--resume"}, folder, {.environment = {"BRISK_ISA=baseline"}});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("agree only up to rounding"), std::string::npos) << outcome.err;
  const std::vector<Json> curve = step_lines(curve_of(folder / "run")),
                          expected = step_lines(curve_of(folder / "reference"));
  ASSERT_EQ(curve.size(), expected.size());
  for (size_t i = 0; i < 10; ++i) {
    EXPECT_NEAR(curve[i]["loss"].get<double>(), expected[i]["loss"].get<double>(), 1e-3) << curve[i];
  }
}

TEST_F(Resume, IsForOneProcessAtATime) {
  write_job(folder, long_job());
  Process first({"train", "job.json", "--output", "run"}, folder);
  ASSERT_TRUE(first.wait_for("step 9/"));
  const Outcome second = resume("run");
  EXPECT_EQ(second.exit_code, 2);
  EXPECT_NE(second.err.find("another brisk"), std::string::npos) << second.err;
  EXPECT_EQ(run_brisk({"train", "job.json", "--output", "run"}, folder).exit_code, 2);
  first.send(SIGINT);
  EXPECT_EQ(first.finish().exit_code, 130);
  EXPECT_FALSE(checkpoints_of(folder / "run").empty());  // and the first one was not disturbed
}

TEST_F(Resume, IsAsQuickAsAFreshStart) {
  const auto start_up_of = [&](const std::string& run) {
    const Json summary = read_json(folder / run + "/summary.json");
    return summary.value("last_process", summary)["ledger"]["start_up"].get<double>();
  };
  const Json job = job_with_everything();
  double fresh = 1e9, resumed = 1e9;  // the best of three: a busy machine slows either
  for (int i = 0; i < 3; ++i) {
    const std::string run = "run" + std::to_string(i);
    interrupt_a_run(job, run);
    fresh = std::min(fresh, start_up_of(run));
    ASSERT_EQ(resume(run).exit_code, 0);
    resumed = std::min(resumed, start_up_of(run));
  }
  EXPECT_LT(resumed, 1.5 * fresh + 0.05);
}

TEST_F(Resume, TellsTheWholeRunAndThisProcessApart) {
  Json job = small_job();
  job["training"].erase("max_steps");
  job["training"]["num_epochs"] = 30;
  job["training"]["save_steps"] = 100;
  const std::string whole = train_small(folder, job, "reference").err;
  write_job(folder, job, "run.json");
  Process process({"train", "run.json", "--output", "run"}, folder);
  ASSERT_TRUE(process.wait_for("epoch 3/"));
  process.send(SIGINT);
  const Outcome stopped = process.finish();
  ASSERT_EQ(stopped.exit_code, 130) << stopped.err;
  const Json before = read_json(folder / "run/summary.json");
  const Outcome outcome = run_brisk({"train", "run.json", "--output", "run", "--resume"}, folder);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;

  // summary.json is of the run, and says apart what is of the last process.
  const Json summary = read_json(folder / "run/summary.json");
  EXPECT_EQ(summary["processes"], 2);
  EXPECT_FALSE(before.contains("last_process"));
  const double wall = summary["wall_seconds"], last = summary["last_process"]["wall_seconds"];
  EXPECT_NEAR(wall, before["wall_seconds"].get<double>() + last, 0.02);
  EXPECT_LE(summary["seconds"].get<double>(), wall);
  double sum = 0;
  for (const auto& [phase, seconds] : summary["ledger"].items()) sum += seconds.get<double>();
  EXPECT_NEAR(sum, wall, 0.01);
  EXPECT_NEAR(summary["ledger"]["start_up"].get<double>(),
              before["ledger"]["start_up"].get<double>() + summary["last_process"]["ledger"]["start_up"].get<double>(),
              1e-6);
  for (const char* part : {"whole run, 2 processes:", "this process, from step "}) {
    EXPECT_TRUE(has(outcome.err, part)) << part << outcome.err;
  }
  // The report has the same figures.
  const Json report = Json::parse(run_brisk({"report", "run", "--json"}, folder).out);
  for (const char* key : {"utilisation", "peak_gflops", "gflops", "sequences_per_second", "peak_memory_bytes"}) {
    EXPECT_EQ(report[key], summary[key]) << key;
  }
  EXPECT_EQ(report["seconds"], summary["wall_seconds"]);
  EXPECT_EQ(report["tokens_per_second"], summary["run_tokens_per_second"]);
  // The closing table is of all epochs (ten of them, evenly spaced), each with the training loss of all its steps.
  const auto losses = [](const std::string& text) {
    std::vector<std::string> found;
    std::istringstream lines(text.substr(text.find("train loss")));
    std::string line;
    std::getline(lines, line);
    std::getline(lines, line);
    while (std::getline(lines, line) && !line.empty()) {
      const std::vector<std::string> words = words_of(line);
      found.push_back(words.at(0) + " " + words.at(1) + " " + words.at(2) + " " + words.at(3));
    }
    return found;
  };
  EXPECT_EQ(losses(outcome.err), losses(whole));
  EXPECT_EQ(losses(whole).size(), 10u);
}

TEST_F(Resume, OfNothingIsAMisspeltFolder) {
  write_job(folder, small_job());
  const Outcome outcome = resume("run");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_TRUE(has(outcome.err, "run: there is no run to resume")) << outcome.err;
  EXPECT_FALSE(std::filesystem::exists(folder / "run"));
}

// kill -9 leaves no time to tidy up. Wherever it hits (vocabulary, token file, a step, a checkpoint half written, the
// summary), the run goes on and ends with the same bits.
TEST_F(Resume, SlowSurvivesKillsAtRandomMoments) {
  Json job = job_with_everything();
  job["training"]["save_steps"] = 4;
  job["training"]["max_steps"] = 240;
  train_small(folder, job, "reference");
  std::mt19937_64 random(11);
  const auto uniform = [&] { return static_cast<double>(random() % 10000) / 10000; };
  int kills = 0, kills_with_checkpoint = 0;
  for (int number = 0; kills < 40; ++number) {
    const std::string run = "run" + std::to_string(number);
    std::filesystem::remove_all(folder / "cache");  // so that kills hit the making of it, too
    write_job(folder, job);
    bool finished = false;
    for (int attempt = 0; attempt < 15 && !finished; ++attempt) {
      std::vector<std::string> command = {"train", "job.json", "--output", run};
      // Killed before there was a run, it is simply started again.
      if (std::filesystem::exists(folder / run + "/job.json")) command.emplace_back("--resume");
      Process process(command, folder);
      process.sleep(attempt == 0 ? 0.2 * uniform() : 0.05 + 0.4 * uniform());
      process.send(SIGKILL);
      const Outcome outcome = process.finish();
      finished = outcome.exit_code == 0;
      if (finished) break;
      ASSERT_EQ(outcome.ended_by, SIGKILL) << "exit code " << outcome.exit_code << "\n" << outcome.err;
      ++kills;
      kills_with_checkpoint += checkpoints_of(folder / run).empty() ? 0 : 1;
    }
    const Outcome outcome = resume(run);
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    expect_same_run(folder / run, folder / "reference");
    if (HasFailure()) return;
  }
  EXPECT_GE(kills, 30);
  EXPECT_GE(kills_with_checkpoint, 10);
  std::printf("%d kills, %d of them after a first checkpoint\n", kills, kills_with_checkpoint);
}

}  // namespace
}  // namespace brisk::program
