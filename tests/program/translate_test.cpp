// Translators, as a user meets them: train, resume, translate, eval, and what is said about data that cannot work.
#include <gtest/gtest.h>
#include <signal.h>

#include <random>
#include <sstream>

#include "program/support/small_job.h"

namespace brisk::program {
namespace {

// Numbers in words, and in digits: a line each.
struct Lines {
  std::string words, digits;
};
Lines numbers(int lines, uint64_t seed) {
  const char* names[] = {"zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"};
  std::mt19937_64 random(seed);
  Lines text;
  for (int i = 0; i < lines; ++i) {
    const uint64_t count = 1 + random() % 4;
    for (uint64_t word = 0; word < count; ++word) {
      const uint64_t digit = random() % 10;
      text.words += std::string(word > 0 ? " " : "") + names[digit];
      text.digits += (word > 0 ? " " : "") + std::to_string(digit);
    }
    text.words += '\n';
    text.digits += '\n';
  }
  return text;
}

Json translate_job() {
  return {{"task", "translate"},
          {"model", {{"d_model", 32}, {"num_layers", 1}, {"num_heads", 2}, {"vocab_size", 300}, {"dropout", 0}}},
          {"training",
           {{"max_length", 24},
            {"batch_size", 32},
            {"max_steps", 40},
            {"learning_rate", 3e-3},
            {"precision", "fp32"},
            {"logging_steps", 5},
            {"eval_steps", 20},
            {"threads", 1}}},
          {"data",
           {{"train", {{"source", "train.en"}, {"target", "train.num"}}},
            {"validation", {{"source", "valid.en"}, {"target", "valid.num"}}}}}};
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

class Translate : public ::testing::Test {
 protected:
  Translate() {
    const Lines train = numbers(1500, 1), valid = numbers(60, 2);
    write_text(folder / "train.en", train.words);
    write_text(folder / "train.num", train.digits);
    write_text(folder / "valid.en", valid.words);
    write_text(folder / "valid.num", valid.digits);
  }

  Outcome train(const Json& job, std::vector<std::string> more = {"--output", "run"}) {
    write_job(folder, job);
    std::vector<std::string> arguments = {"train", "job.json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_brisk(arguments, folder);
  }

  std::string refusal(const Json& job) {
    const Outcome outcome = train(job, {"--output", "refused"});
    EXPECT_EQ(outcome.exit_code, 2) << outcome.err;
    EXPECT_FALSE(std::filesystem::exists(folder / "refused"));
    const size_t at = outcome.err.rfind("brisk: ");
    return at == std::string::npos ? outcome.err : outcome.err.substr(at);
  }

  TemporaryFolder folder;
};

TEST_F(Translate, LearnsAndIsMeasuredAndAsked) {
  Json job = translate_job();
  job["training"]["max_steps"] = 400;
  job["training"]["eval_steps"] = 200;
  job["training"]["best_by"] = "bleu";
  const Outcome trained = train(job);
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  for (const char* words : {"pairs        1,500", "source:", "reference:", "output:", "brisk translate run"})
    EXPECT_TRUE(has(trained.err, words)) << words << "\n" << trained.err;
  const Json summary = read_json(folder / "run/summary.json");
  EXPECT_GT(summary["best"]["validation_bleu"].get<double>(), 50) << trained.err;
  EXPECT_GT(summary["best"]["validation_chrf"].get<double>(), 50);
  EXPECT_GT(summary["best"]["validation_accuracy"].get<double>(), 0.7);
  const std::vector<std::string> samples = lines_of(read_text(folder / "run/samples.jsonl"));
  ASSERT_EQ(samples.size(), 6u) << "three at each evaluation";
  EXPECT_EQ(Json::parse(samples[0])["prompt"], lines_of(read_text(folder / "valid.en"))[0]);
  EXPECT_EQ(Json::parse(samples[0])["reference"], lines_of(read_text(folder / "valid.num"))[0]);

  const Outcome measured =
      run_brisk({"eval", "run", "--source", "valid.en", "--target", "valid.num", "--beam", "1", "--json"}, folder);
  ASSERT_EQ(measured.exit_code, 0) << measured.err;
  const Json scores = Json::parse(measured.out);
  EXPECT_NEAR(scores["bleu"].get<double>(), summary["best"]["validation_bleu"].get<double>(), 1e-9);
  EXPECT_NEAR(scores["loss"].get<double>(), summary["best"]["validation_loss"].get<double>(), 1e-5);
  EXPECT_TRUE(has(scores["signature"], "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp")) << scores;
  EXPECT_GT(scores["chrf"].get<double>(), 50);

  // What eval translates is what translate answers, in whatever way the lines come.
  const std::string lines = read_text(folder / "valid.en");
  const Outcome piped = run_brisk({"translate", "run", "--beam", "1"}, folder, {.input = lines});
  const Outcome file = run_brisk({"translate", "run", "--beam", "1", "--data", "valid.en"}, folder);
  ASSERT_EQ(piped.exit_code, 0) << piped.err;
  EXPECT_EQ(piped.out, file.out);
  EXPECT_EQ(lines_of(piped.out).size(), 60u);
  write_text(folder / "out.num", piped.out);
  const Outcome scored = run_brisk({"score", "--hypotheses", "out.num", "--references", "valid.num", "--json"}, folder);
  ASSERT_EQ(scored.exit_code, 0) << scored.err;
  EXPECT_NEAR(Json::parse(scored.out)["bleu"].get<double>(), scores["bleu"].get<double>(), 1e-9);
  EXPECT_NEAR(Json::parse(scored.out)["chrf"].get<double>(), scores["chrf"].get<double>(), 1e-9);
  const Outcome one = run_brisk({"translate", "run", "--beam", "1", lines_of(lines)[7]}, folder);
  EXPECT_EQ(one.out, lines_of(piped.out)[7] + "\n");

  const Outcome best = run_brisk({"translate", "run", "--beam", "4", "--n-best", "3", "--json", "one two"}, folder);
  ASSERT_EQ(best.exit_code, 0) << best.err;
  const Json answer = Json::parse(best.out);
  ASSERT_EQ(answer["best"].size(), 3u);
  EXPECT_GE(answer["best"][0]["score"], answer["best"][1]["score"]);
  EXPECT_EQ(answer["text"], answer["best"][0]["text"]);

  const Outcome reported = run_brisk({"report", "run"}, folder);
  ASSERT_EQ(reported.exit_code, 0) << reported.err;
  EXPECT_TRUE(has(read_text(folder / "run/report.html"), "BLEU"));
  EXPECT_TRUE(has(run_brisk({"generate", "run"}, folder).err, "`brisk translate` translates"));
}

TEST_F(Translate, AnswersEveryLineInItsPlace) {
  ASSERT_EQ(train(translate_job()).exit_code, 0);
  std::string longer;
  for (int i = 0; i < 30; ++i) longer += "one two three. ";
  const Outcome answered =
      run_brisk({"translate", "run", "--json"}, folder, {.input = "\none\n  \n" + longer + "\nsix\r\nseven"});
  ASSERT_EQ(answered.exit_code, 0) << answered.err;
  const std::vector<std::string> answers = lines_of(answered.out);
  ASSERT_EQ(answers.size(), 6u) << answered.out;
  EXPECT_EQ(Json::parse(answers[0])["text"], "");
  EXPECT_EQ(Json::parse(answers[2])["parts"], 0);
  EXPECT_GT(Json::parse(answers[3])["parts"], 1);
  EXPECT_TRUE(has(answered.err, "2 of 6 texts are empty: answered by an empty line")) << answered.err;
  EXPECT_TRUE(has(answered.err, "1 of 6 texts is longer than the model reads: translated in parts")) << answered.err;
}

TEST_F(Translate, ResumesToTheBitAndIsTheSameOnAnyThreads) {
  Json job = translate_job();
  job["model"]["dropout"] = 0.1;
  job["training"]["save_steps"] = 7;
  job["training"]["eval_steps"] = 9;
  job["training"]["gradient_accumulation_steps"] = 2;
  ASSERT_EQ(train(job, {"--output", "whole"}).exit_code, 0);
  write_job(folder, job);
  Process process({"train", "job.json", "--output", "killed"}, folder);
  ASSERT_TRUE(process.wait_for("step 18: validation"));
  process.send(SIGKILL);
  process.finish();
  const Outcome resumed = train(job, {"--output", "killed", "--resume"});
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_EQ(curve_of(folder / "killed"), curve_of(folder / "whole"));
  EXPECT_EQ(last_model_bytes(folder / "killed"), last_model_bytes(folder / "whole"));
  ASSERT_EQ(train(job, {"--output", "two", "--set", "training.threads=2"}).exit_code, 0);
  EXPECT_EQ(curve_of(folder / "two"), curve_of(folder / "whole"));
}

TEST_F(Translate, IsTheSameOnSeveralRanks) {
  Json job = translate_job();
  job["training"]["max_steps"] = 12;
  job["training"]["eval_steps"] = 6;
  job["training"]["logical_ranks"] = 2;
  ASSERT_EQ(train(job, {"--output", "one"}).exit_code, 0);
  const Outcome two = run_brisk({"launch", "-n", "2", "train", "job.json", "--output", "two"}, folder);
  ASSERT_EQ(two.exit_code, 0) << two.err;
  EXPECT_EQ(curve_of(folder / "two"), curve_of(folder / "one"));
  EXPECT_EQ(last_model_bytes(folder / "two"), last_model_bytes(folder / "one"));
}

TEST_F(Translate, EndsWithItsTimeAndComputesInBf16) {
  Json job = translate_job();
  job["training"].erase("max_steps");
  job["training"].erase("eval_steps");
  job["training"]["stop"] = "2s";
  job["training"]["divergence_guard"] = false;  // all is learned after a few hundred of thousands of steps
  job["training"]["precision"] = "bf16";
  const Outcome outcome = train(job);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_TRUE(read_json(folder / "run/summary.json")["best"].contains("validation_bleu"));
}

TEST_F(Translate, IsTheSameInSmallMicroBatchesAndWithCheckpointedActivations) {
  Json job = translate_job();
  job["training"]["max_steps"] = 10;
  job["training"]["eval_steps"] = 100;
  job["training"]["logging_steps"] = 1;
  ASSERT_EQ(train(job, {"--output", "plain"}).exit_code, 0);
  ASSERT_EQ(train(job, {"--output", "small", "--set", "training.micro_batch_tokens=40"}).exit_code, 0);
  ASSERT_EQ(train(job, {"--output", "kept", "--set", "training.gradient_checkpointing=1"}).exit_code, 0);
  const std::vector<Json> plain = step_lines(metrics_of(folder / "plain")),
                          small = step_lines(metrics_of(folder / "small")),
                          kept = step_lines(metrics_of(folder / "kept"));
  ASSERT_EQ(plain.size(), small.size());
  for (size_t i = 0; i < plain.size(); ++i) {
    EXPECT_NEAR(plain[i]["loss"].get<double>(), small[i]["loss"].get<double>(), 1e-4) << i;
    EXPECT_EQ(plain[i]["loss"], kept[i]["loss"]) << i;
    EXPECT_EQ(plain[i]["tokens"], small[i]["tokens"]) << "rows of both sides, however they are divided";
  }
}

TEST_F(Translate, TakesTablesAndSeparateTokenizers) {
  const Lines train_lines = numbers(300, 1);
  const std::vector<std::string> words = lines_of(train_lines.words), digits = lines_of(train_lines.digits);
  std::string table, json;
  for (size_t i = 0; i < words.size(); ++i) {
    table += words[i] + "\t" + digits[i] + "\n";
    json += Json({{"translation", {{"en", words[i]}, {"num", digits[i]}}}}).dump() + "\n";
  }
  write_text(folder / "pairs.tsv", table);
  write_text(folder / "pairs.jsonl", json);
  Json job = translate_job();
  job["training"]["max_steps"] = 4;
  job["data"] = {{"train", "pairs.tsv"}, {"separate_tokenizers", true}};
  const Outcome separate = train(job);
  ASSERT_EQ(separate.exit_code, 0) << separate.err;
  EXPECT_TRUE(std::filesystem::exists(folder / "run/target_tokenizer.json"));
  EXPECT_EQ(run_brisk({"translate", "run", "one two"}, folder).exit_code, 0);
  const Outcome measured = run_brisk({"eval", "run", "--data", "pairs.tsv", "--json"}, folder);
  EXPECT_EQ(measured.exit_code, 0) << measured.err;
  EXPECT_EQ(train(job, {"--output", "run", "--resume", "--set", "training.max_steps=5"}).exit_code, 0);

  job["data"] = {{"train", "pairs.jsonl"}, {"source_field", "translation.en"}, {"target_field", "translation.num"}};
  const Outcome fields = train(job, {"--output", "fields"});
  ASSERT_EQ(fields.exit_code, 0) << fields.err;
  job["data"]["source_field"] = "translation.fr";
  EXPECT_TRUE(has(refusal(job), "no column \"translation.fr\" (data.source_field)"));
}

TEST_F(Translate, SaysWhatIsWrongWithItsData) {
  Json job = translate_job();
  write_text(folder / "train.num", numbers(1499, 1).digits);
  std::string message = refusal(job);
  EXPECT_TRUE(has(message, "train.num: the file ends with line 1499, but train.en has a line 1500")) << message;

  job = translate_job();
  job["data"]["train"] = {{"source", "train.en"}};
  EXPECT_TRUE(has(refusal(job), "\"target\"")) << refusal(job);
  job["data"]["train"] = {{"source", "train.en"}, {"target", "nowhere.num"}};
  EXPECT_TRUE(has(refusal(job), "nowhere.num: no such file"));
  job["data"]["train"] = {{"source", "train.en"}, {"target", "train.en"}};
  EXPECT_TRUE(has(refusal(job), "named as source and as target"));
  job["data"]["train"] = "train.en";
  EXPECT_TRUE(has(refusal(job), "train.en: no table (.csv, .tsv, .jsonl)")) << refusal(job);

  write_text(folder / "train.num", numbers(1500, 1).digits);
  job = translate_job();
  job["training"]["best_by"] = "bleu";
  job["training"]["eval_translations"] = 0;
  EXPECT_TRUE(has(refusal(job), "no text is written to measure it"));
  job = translate_job();
  job["training"]["max_length"] = 1;
  EXPECT_TRUE(has(refusal(job), "training.max_length = 1: special tokens are added to each text; use 2 or more"));
  job = translate_job();
  job["data"]["text_field"] = "words";
  EXPECT_TRUE(has(refusal(job), "data.text_field does not apply to task translate")) << refusal(job);
  job = translate_job();
  job["model"]["type"] = "bert";
  EXPECT_EQ(train(job, {"--output", "refused"}).exit_code, 2);
}

TEST_F(Translate, IsPlannedAndDiagnosed) {
  Json job = translate_job();
  job["training"].erase("learning_rate");  // which would not suit other widths
  write_job(folder, job);
  const Outcome plan = run_brisk({"plan", "job.json", "--json"}, folder);
  ASSERT_EQ(plan.exit_code, 0) << plan.err;
  EXPECT_FALSE(Json::parse(plan.out).empty());
  const Outcome doctor = run_brisk({"doctor", "job.json", "--budget", "15s", "--json"}, folder);
  ASSERT_EQ(doctor.exit_code, 0) << doctor.err;
  EXPECT_FALSE(Json::parse(doctor.out).empty());
}

TEST_F(Translate, SaysWhatIsWrongWithACall) {
  Json job = translate_job();
  job["training"]["max_steps"] = 2;
  ASSERT_EQ(train(job).exit_code, 0);
  const auto said = [&](std::vector<std::string> arguments) {
    const Outcome outcome = run_brisk(arguments, folder);
    EXPECT_EQ(outcome.exit_code, 2) << outcome.err;
    return outcome.err;
  };
  EXPECT_TRUE(has(said({"translate", "run", "--n-best", "5", "one"}), "--n-best 5: beam search of width 4"));
  EXPECT_TRUE(has(said({"eval", "run"}), "--source FILE --target FILE"));
  EXPECT_TRUE(has(said({"eval", "run", "--source", "valid.en"}), "--source needs --target"));
  EXPECT_TRUE(
      has(said({"eval", "run", "--source", "valid.en", "--target", "train.num"}), "the file ends with line 60"));
  EXPECT_TRUE(has(said({"predict", "run", "one"}), "brisk: ")) << "no classifier";
  EXPECT_TRUE(has(said({"translate", "run", "--top-k", "5", "one"}), "--sample"));
  const Outcome missing = run_brisk({"translate", "run", "--data", "nowhere.txt"}, folder);
  EXPECT_EQ(missing.exit_code, 2);
  EXPECT_TRUE(has(missing.err, "nowhere.txt")) << missing.err;
}

TEST_F(Translate, IsTriedOutBySmokeTest) {
  const Outcome tried = train(translate_job(), {"--smoke-test"});
  EXPECT_EQ(tried.exit_code, 0) << tried.err;
  EXPECT_TRUE(has(tried.err + tried.out, "of the job's own pairs of texts")) << tried.err;
}

TEST_F(Translate, SkipsPairsThatAreTooLongOrCutsThem) {
  Json job = translate_job();
  job["training"]["max_steps"] = 2;
  job["training"]["max_length"] = 6;
  const Outcome skipped = train(job, {"--output", "skipped"});
  ASSERT_EQ(skipped.exit_code, 0) << skipped.err;
  EXPECT_TRUE(has(skipped.err, "left out of training")) << skipped.err;
  job["data"]["too_long"] = "cut";
  const Outcome cut = train(job, {"--output", "cut"});
  ASSERT_EQ(cut.exit_code, 0) << cut.err;
  EXPECT_TRUE(has(cut.err, "and are cut")) << cut.err;
  EXPECT_TRUE(has(cut.err, "pairs        1,500")) << cut.err;
}

}  // namespace
}  // namespace brisk::program
