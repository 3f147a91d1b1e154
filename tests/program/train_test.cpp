// `brisk train` from text to a run directory.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <regex>
#include <sstream>

#include "program/support/small_job.h"

namespace brisk::program {
namespace {

using Names = std::vector<std::string>;

const Names kStepKeys = {"accuracy", "epoch",     "gradient_norm", "learning_rate",
                         "loss",     "rollbacks", "seconds",       "skipped_updates",
                         "step",     "step_ms",   "tokens",        "tokens_per_second"};
const Names kEvaluationKeys = {"epoch",
                               "seconds",
                               "step",
                               "validation_accuracy",
                               "validation_bits_per_byte",
                               "validation_loss",
                               "validation_perplexity"};

// Nats a token of a model that knows how often each token is, and nothing else.
double unigram_entropy(const TemporaryFolder& folder, const std::string& run) {
  const Outcome encoded = run_brisk({"tokenizer", "encode", "--tokenizer", run + "/tokenizer.json"}, folder,
                                    {.input = read_text(folder / "text.txt")});
  EXPECT_EQ(encoded.exit_code, 0) << encoded.err;
  std::map<int64_t, double> counts;
  double tokens = 0;
  std::istringstream lines(encoded.out);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream ids(line);
    for (int64_t id = 0; ids >> id; ++tokens) ++counts[id];
    ++counts[-1];  // the end of a document is predicted too
    ++tokens;
  }
  double entropy = 0;
  for (const auto& [id, count] : counts) entropy -= count / tokens * std::log(count / tokens);
  return entropy;
}

TEST(Train, LearnsMoreThanHowOftenEachTokenIs) {
  TemporaryFolder folder;
  Json job = small_job();
  job["training"]["max_steps"] = 150;
  job["training"]["logging_steps"] = 50;
  train_small(folder, job, "run");
  const double unigram = unigram_entropy(folder, "run");
  EXPECT_GT(unigram, 2.0);  // the text is no trifle
  const Json summary = read_json(folder / "run/summary.json");
  EXPECT_LT(summary["validation_loss"].get<double>(), 0.6 * unigram);
  EXPECT_LT(summary["loss"].get<double>(), 0.6 * unigram);
  EXPECT_GT(summary["validation_accuracy"].get<double>(), 0.3);
}

TEST(Train, FillsTheRunDirectory) {
  TemporaryFolder folder;
  Json job = small_job();
  job["training"]["eval_steps"] = 10;
  job["training"]["logging_steps"] = 7;
  job["training"]["save_steps"] = 10;
  train_small(folder, job, "run");
  const std::string run = folder / "run";

  const Json saved = read_json(run + "/job.json");  // resolved: what brisk chose stands there as well
  EXPECT_EQ(saved["model"]["d_ff"], 128);
  EXPECT_EQ(saved["training"]["max_steps"], 30);
  EXPECT_EQ(saved["data"]["train"], Json({folder / "text.txt"}));  // from anywhere
  EXPECT_TRUE(read_json(run + "/tokenizer.json").is_object());

  const std::vector<Json> lines = metrics_of(run);
  std::vector<int64_t> steps, evaluations;
  for (const Json& line : step_lines(lines)) {
    EXPECT_EQ(keys_of(line), kStepKeys);
    steps.push_back(line["step"]);
  }
  for (const Json& line : evaluation_lines(lines)) {
    EXPECT_EQ(keys_of(line), kEvaluationKeys);
    evaluations.push_back(line["step"]);
    EXPECT_NEAR(line["validation_perplexity"].get<double>(), std::exp(line["validation_loss"].get<double>()), 1e-6);
  }
  EXPECT_EQ(steps, (std::vector<int64_t>{7, 14, 21, 28, 30}));
  EXPECT_EQ(evaluations, (std::vector<int64_t>{10, 20, 30}));
  EXPECT_EQ(step_lines(lines).size() + evaluation_lines(lines).size(), lines.size());
  for (const std::string& name : checkpoints_of(run)) {
    for (const char* file : {"model.safetensors", "optimizer.safetensors", "state.json"}) {
      EXPECT_FALSE(read_text(run + "/checkpoints/" + name + "/" + file).empty()) << name << " " << file;
    }
  }
  EXPECT_EQ(checkpoints_of(run), (Names{"step-00000020", "step-00000030"}));
}

TEST(Train, SummarisesTheRun) {
  TemporaryFolder folder;
  Json job = small_job();
  job["training"]["max_steps"] = 60;
  train_small(folder, job, "run");
  const Json summary = read_json(folder / "run/summary.json");
  for (const Names& keys :
       {kStepKeys, kEvaluationKeys,
        Names{"parameters", "model_bytes", "ledger", "wall_seconds", "utilisation", "peak_memory_bytes"}}) {
    for (const std::string& key : keys) EXPECT_TRUE(summary.contains(key)) << key;
  }
  const std::vector<Json> lines = metrics_of(folder / "run");
  for (const std::string& key : kStepKeys) {
    if (key == "step" || key == "epoch" || key == "seconds") continue;  // of the evaluation, which came later
    EXPECT_EQ(summary[key], step_lines(lines).back()[key]) << key;
  }
  EXPECT_EQ(summary["validation_loss"], evaluation_lines(lines).back()["validation_loss"]);
  // Embedding 320 x 32, positions 32 x 32, per layer: attention 4 (32 x 32 + 32), feed-forward 2 x 32 x 128 + 160,
  // two norms of 64; and the last norm.
  const int64_t parameters = 320 * 32 + 32 * 32 + 2 * (4 * (32 * 32 + 32) + 2 * 32 * 128 + 160 + 2 * 64) + 64;
  EXPECT_EQ(summary["parameters"], parameters);
  EXPECT_EQ(summary["model_bytes"], 4 * parameters);
  EXPECT_GT(summary["utilisation"].get<double>(), 0.0);
  EXPECT_LT(summary["utilisation"].get<double>(), 1.0);
  EXPECT_GT(summary["peak_memory_bytes"].get<int64_t>(), 1 << 20);
}

TEST(Train, AnEpochTellsLossPerplexityAndAccuracyOfTrainingAndValidation) {
  TemporaryFolder folder;
  Json job = small_job();
  job["training"].erase("max_steps");
  job["training"]["num_epochs"] = 2;
  job["training"]["eval_steps"] = 0;
  const std::string told = train_small(folder, job, "run").err;
  const std::string figure = "([0-9.]+)", share = figure + " %";
  const std::regex line("epoch 1/2: loss " + figure + ", perplexity " + figure + ", accuracy " + share +
                        ", validation loss " + figure + ", perplexity " + figure + ", accuracy " + share);
  std::smatch found;
  ASSERT_TRUE(std::regex_search(told, found, line)) << told;
  for (const size_t loss : {1, 4}) {
    const double perplexity = std::stod(found[loss + 1]);
    EXPECT_NEAR(perplexity, std::exp(std::stod(found[loss])), 0.01 * perplexity);
  }
  const std::regex header("train loss +perplexity +accuracy +val loss +val perplexity +val accuracy");
  EXPECT_TRUE(std::regex_search(told, header)) << told;
}

TEST(Train, WindowsThatOverlapAreMoreSequencesAndAreEvaluatedSoToo) {
  TemporaryFolder folder;
  Json job = small_job();
  job["data"]["document"] = "file";
  job["training"]["max_length"] = 16;
  job["training"]["max_steps"] = 4;
  train_small(folder, job, "run");
  job["training"]["window_stride"] = 8;
  train_small(folder, job, "overlapping");
  const auto start = [&](const std::string& run) {
    const std::string ledger = read_text(folder / run + "/ledger.jsonl");
    return Json::parse(ledger.substr(0, ledger.find('\n')));
  };
  for (const char* key : {"training_tokens", "validation_tokens"}) {
    const double ratio = start("overlapping")[key].get<double>() / start("run")[key].get<double>();
    EXPECT_NEAR(ratio, 2, 0.1) << key;
  }
  const std::string overlapping = run_brisk({"eval", "overlapping", "--data", "text.txt", "--json"}, folder).out;
  const std::string apart = run_brisk({"eval", "run", "--data", "text.txt", "--json"}, folder).out;
  EXPECT_NEAR(Json::parse(overlapping)["tokens"].get<double>() / Json::parse(apart)["tokens"].get<double>(), 2, 0.1);
}

TEST(Train, AnAccumulationThatIsNotFullIsDroppedIfTheJobSaysSo) {
  TemporaryFolder folder;
  Json job = small_job();
  job["training"].erase("max_steps");
  job["training"]["num_epochs"] = 1;
  job["training"]["batch_size"] = 7;
  job["training"]["gradient_accumulation_steps"] = 4;
  const auto steps = [&](const std::string& run) {
    train_small(folder, job, run);
    return step_lines(metrics_of(folder / run)).back()["step"].get<int64_t>();
  };
  const int64_t all = steps("all");
  job["training"]["drop_incomplete_accumulation"] = true;
  EXPECT_EQ(steps("dropped"), all - 1);
}

TEST(Train, AScheduleLongerThanTheRunHasNotFallenAtItsEnd) {
  TemporaryFolder folder;
  Json job = small_job();
  job["training"]["max_steps"] = 40;
  job["training"]["optimizer"] = "adamw";
  job["training"]["lr_scheduler"] = "linear";
  job["training"]["warmup_steps"] = 0;
  job["training"]["learning_rate"] = 1e-3;
  job["training"]["schedule_ratio"] = 4;
  const std::string told = train_small(folder, job, "run").err;
  EXPECT_NE(told.find("down to 0.000756 at the end of the run: the schedule is 4 times as long"), std::string::npos)
      << told;
  EXPECT_NEAR(step_lines(metrics_of(folder / "run")).back()["learning_rate"].get<double>(), 7.5625e-4, 1e-9);
}

TEST(Train, TheReferenceOfMuSaysEverywhereThatItsPerplexityIsNotALanguageModels) {
  TemporaryFolder folder;
  Json job = small_job();
  job["model"] = {{"type", "mu"}, {"num_layers", 1}, {"vocab_size", 320}, {"reference", true}};
  job["training"]["max_steps"] = 3;
  const std::string told = train_small(folder, job, "run").err;
  const std::string words = "are not a language model's";
  EXPECT_NE(told.find(words), std::string::npos) << told;
  EXPECT_NE(read_json(folder / "run/summary.json")["warnings"].dump().find(words), std::string::npos);
  EXPECT_EQ(run_brisk({"report", "run", "--output", "page.html"}, folder).exit_code, 0);
  EXPECT_NE(read_text(folder / "page.html").find("language model"), std::string::npos);
  const Outcome evaluation = run_brisk({"eval", "run", "--data", "text.txt"}, folder);
  EXPECT_NE((evaluation.out + evaluation.err).find(words), std::string::npos) << evaluation.err;
}

// The rows of the table at the end, as words.
std::vector<Names> epochs_table(const std::string& text) {
  std::vector<Names> rows;
  std::istringstream lines(text.substr(text.find("train loss")));
  std::string line;
  for (int i = 0; i < 2; ++i) std::getline(lines, line);
  while (std::getline(lines, line) && !line.empty()) rows.push_back(words_of(line));
  return rows;
}

TEST(Train, TheTableOfEpochsHasNoValidationTwiceAndTheLastEpochToo) {
  TemporaryFolder folder;
  Json job = small_job();
  job["training"].erase("max_steps");
  job["training"]["num_epochs"] = 5;
  job["training"]["eval_steps"] = 150;
  const Outcome outcome = train_small(folder, job, "run");
  const std::vector<Names> rows = epochs_table(outcome.err);
  ASSERT_EQ(rows.size(), 5u) << outcome.err;
  const int64_t epoch = std::stoll(rows[0][1]);  // its steps
  ASSERT_GT(epoch, 50);
  ASSERT_LT(epoch, 75);
  for (const size_t row : {0, 1, 3}) EXPECT_EQ(rows[row][6], "-") << "no evaluation was in it: " << outcome.err;
  for (const size_t row : {2, 4}) EXPECT_NE(rows[row][6], "-") << outcome.err;

  // Early stopping in the middle of an epoch.
  job["training"]["early_stopping_patience"] = 1;
  job["training"]["eval_steps"] = 20;
  job["training"]["learning_rate"] = 1e-9;
  job["training"]["muon_learning_rate"] = 1e-9;
  job["training"]["weight_decay"] = 0;
  const Outcome early = train_small(folder, job, "early");
  ASSERT_TRUE(has(early.err, "early stopping at step")) << early.err;
  const int64_t step = read_json(folder / "early/summary.json")["step"];
  ASSERT_NE(step % epoch, 0);
  EXPECT_EQ(epochs_table(early.err).back()[1], std::to_string(step)) << early.err;
}

TEST(Train, AccountsForAllOfItsTime) {
  TemporaryFolder folder;
  Json job = small_job();
  job["training"]["max_steps"] = 60;
  job["training"]["eval_steps"] = 20;
  train_small(folder, job, "run");
  const Json summary = read_json(folder / "run/summary.json");
  double sum = 0;
  for (const auto& [phase, seconds] : summary["ledger"].items()) sum += seconds.get<double>();
  const double wall = summary["wall_seconds"];
  EXPECT_NEAR(sum, wall, 0.01 * wall);
  EXPECT_LT(summary["ledger"]["other"].get<double>(), 0.03 * wall);
  for (const char* phase :
       {"start_up", "forward_linear", "backward_attention", "optimizer", "evaluation", "checkpoint"}) {
    EXPECT_GT(summary["ledger"][phase].get<double>(), 0.0) << phase;
  }
}

TEST(Train, PrintsResultsOnStandardOutputAndTalkOnStandardErrorAsPlainLines) {
  TemporaryFolder folder;
  const Outcome outcome = train_small(folder, small_job(), "run");
  EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), '\n'), 1) << outcome.out;
  EXPECT_NE(outcome.out.find("validation loss"), std::string::npos) << outcome.out;
  for (const char* part : {"model.d_ff = 128", "layernorm", "schedule     ", "feed-forward", "documents", "step 30/30",
                           "wall time", "tokens/s", "brisk generate run"}) {
    EXPECT_NE(outcome.err.find(part), std::string::npos) << part << "\n" << outcome.err;
  }
  for (const std::string& text : {outcome.out, outcome.err}) {
    EXPECT_EQ(text.find('\x1b'), std::string::npos);
    EXPECT_EQ(text.find('\r'), std::string::npos);
  }
}

TEST(Train, RunsTheOtherTrainersJobAsItStands) {
  TemporaryFolder folder;
  write_text(folder / "text.txt", english_like_text(100));
  write_text(folder / "config.json", R"({
    "model": {"d_model": 64, "num_layers": 2, "vocab_size": 10000},
    "training": {"max_length": 64, "batch_size": 32, "num_epochs": 1}
  })");
  const Outcome outcome = run_brisk({"train", "config.json", "--data", "text.txt"}, folder);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  // The vocabulary is larger than so little text supports: a warning, and the smaller one is used.
  EXPECT_NE(outcome.err.find("warning: model.vocab_size 10000 is more than this text supports"), std::string::npos)
      << outcome.err;
  const Json job = read_json(folder / "runs/config/job.json");
  const int64_t vocabulary = job["model"]["vocab_size"];
  EXPECT_GT(vocabulary, 256);
  EXPECT_LT(vocabulary, 1000);
  EXPECT_NE(outcome.err.find("using " + std::to_string(vocabulary)), std::string::npos) << outcome.err;
  // The second time the vocabulary comes from the cache, and the warning with it.
  const Outcome again = run_brisk({"train", "config.json", "--data", "text.txt", "--output", "again"}, folder);
  EXPECT_NE(again.err.find("more than this text supports"), std::string::npos) << again.err;
}

TEST(Train, UnderstandsOtherSpellingsAndNamesItsOwn) {
  TemporaryFolder folder;
  write_text(folder / "text.txt", english_like_text(100));
  write_text(folder / "job.json", R"({
    "model": {"n_embd": 32, "n_layers": 1, "n_head": 2, "vocab_size": 300},
    "training": {"max_seq_len": 16, "per_device_train_batch_size": 4, "num_train_epochs": 3, "lr": 1e-3,
                 "max_steps": 2}
  })");
  const Outcome outcome = run_brisk({"train", "job.json", "--data", "text.txt"}, folder);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  for (const char* note :
       {"n_layers is model.num_layers", "max_seq_len is training.max_length",
        "per_device_train_batch_size is training.batch_size", "num_train_epochs is training.num_epochs"}) {
    EXPECT_NE(outcome.err.find(note), std::string::npos) << note << "\n" << outcome.err;
  }
  const Json job = read_json(folder / "runs/job/job.json");
  EXPECT_EQ(job["model"]["num_layers"], 1);
  EXPECT_EQ(job["training"]["max_length"], 16);
}

TEST(Train, TakesSettingsFromTheCommandLineBeforeOrAfterTheJob) {
  TemporaryFolder folder;
  write_text(folder / "text.txt", english_like_text(100));
  write_job(folder, small_job());
  const Outcome outcome = run_brisk(
      {"train", "--set", "training.max_steps=3", "job.json", "--set", "training.batch_size=2", "--output", "run"},
      folder);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(read_json(folder / "run/job.json")["training"]["batch_size"], 2);
  EXPECT_EQ(read_json(folder / "run/summary.json")["step"], 3);
}

}  // namespace
}  // namespace brisk::program
