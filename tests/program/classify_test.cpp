// Classifiers, as a user meets them: train, resume, eval, predict, export, and what is said about tables that cannot
// work.
#include <gtest/gtest.h>
#include <signal.h>

#include <sstream>

#include "program/support/small_job.h"

namespace brisk::program {
namespace {

// Reviews whose class hangs on one word among others.
std::string reviews(int rows, unsigned seed, bool with_newlines = true) {
  const char* good[] = {"fine", "lovely", "bright", "clever"};
  const char* bad[] = {"dull", "awful", "tired", "clumsy"};
  const char* things[] = {"film", "story", "plot", "actor", "ending", "music"};
  std::string text = "id,review,sentiment\n";
  unsigned state = seed;
  const auto draw = [&](unsigned count) {
    state = state * 1664525u + 1013904223u;
    return (state >> 16) % count;
  };
  for (int i = 0; i < rows; ++i) {
    const bool positive = draw(3) != 0;
    text += std::to_string(i) + ",\"the " + things[draw(6)] + " was " + (positive ? good[draw(4)] : bad[draw(4)]);
    text += with_newlines ? ",\nand the " : " and the ";
    text += std::string(things[draw(6)]) + " \"\"number " + std::to_string(draw(50)) + "\"\" came too\"," +
            (positive ? "positive" : "negative") + "\n";
  }
  return text;
}

Json classify_job() {
  return {{"task", "classify"},
          {"model", {{"d_model", 32}, {"num_layers", 2}, {"num_heads", 2}, {"vocab_size", 300}}},
          {"training",
           {{"max_length", 24},
            {"batch_size", 16},
            {"num_epochs", 5},
            {"learning_rate", 3e-3},
            {"precision", "fp32"},
            {"logging_steps", 5},
            {"threads", 1}}},
          {"data", {{"train", {"reviews.csv"}}, {"validation_fraction", 0.2}}}};
}

class Classify : public ::testing::Test {
 protected:
  Classify() { write_text(folder / "reviews.csv", reviews(400, 1)); }

  Outcome train(const Json& job, std::vector<std::string> more = {"--output", "run"}) {
    write_job(folder, job);
    std::vector<std::string> arguments = {"train", "job.json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_brisk(arguments, folder);
  }

  // The one message of a job that cannot run, which leaves nothing behind.
  std::string refusal(const Json& job) {
    const Outcome outcome = train(job, {"--output", "refused"});
    EXPECT_EQ(outcome.exit_code, 2) << outcome.err;
    EXPECT_FALSE(std::filesystem::exists(folder / "refused"));
    const size_t at = outcome.err.rfind("brisk: ");
    return at == std::string::npos ? outcome.err : outcome.err.substr(at);
  }

  TemporaryFolder folder;
};

std::vector<Json> lines_of(const std::string& text) {
  std::vector<Json> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(Json::parse(line));
  return lines;
}

TEST_F(Classify, ThatNamesOneClassOnlySaysSo) {
  Json job = classify_job();
  job["training"]["learning_rate"] = 5;
  job["training"]["num_epochs"] = 1;
  const Outcome trained = train(job);
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_TRUE(has(trained.err, "warning: the model predicts one class only: at step ")) << trained.err;
  EXPECT_TRUE(has(read_json(folder / "run/summary.json")["warnings"].dump(), "predicts one class only"));
  EXPECT_EQ(run_brisk({"report", "run"}, folder).exit_code, 0);
  EXPECT_TRUE(has(read_text(folder / "run/report.html"), "predicts one class only"));
  EXPECT_TRUE(has(trained.err, "lower training.learning_rate (now 5)")) << trained.err;

  job["training"]["learning_rate"] = 1e-9;
  const Outcome slow = train(job, {"--overwrite"});
  ASSERT_EQ(slow.exit_code, 0) << slow.err;
  EXPECT_FALSE(has(slow.err, "lower training.learning_rate")) << slow.err;
  EXPECT_FALSE(has(slow.err, "more harm than good")) << slow.err;
  EXPECT_TRUE(has(slow.err, "raise training.learning_rate (now 1e-09; ")) << slow.err;
}

TEST_F(Classify, IsExportedWithItsLengthAndAnswersTheSame) {
  // Long texts whose end says the opposite of their beginning: where they are cut decides.
  std::string table = "text,label\n";
  for (int i = 0; i < 120; ++i) {
    std::string filler;
    for (int word = 0; word < 30; ++word) filler += " word" + std::to_string((i * 7 + word) % 20);
    table += std::string(i % 2 == 0 ? "fine" : "awful") + filler + (i % 2 == 0 ? " awful" : " fine") + "," +
             (i % 2 == 0 ? "good" : "bad") + "\n";
  }
  write_text(folder / "reviews.csv", table);
  Json job = classify_job();
  job["model"]["context"] = 64;
  job["training"]["max_length"] = 12;
  const Outcome trained = train(job);
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  ASSERT_EQ(run_brisk({"export", "run", "--format", "huggingface", "--output", "export"}, folder).exit_code, 0);
  EXPECT_EQ(read_json(folder / "export/tokenizer_config.json")["model_max_length"], 12);
  const Outcome of_run = run_brisk({"predict", "run", "--data", "reviews.csv", "--fp32"}, folder);
  const Outcome of_export = run_brisk({"predict", "export", "--data", "reviews.csv"}, folder);
  ASSERT_EQ(of_export.exit_code, 0) << of_export.err;
  EXPECT_EQ(of_run.out, of_export.out);
  EXPECT_TRUE(has(of_run.err, "120 of 120 texts are longer than 12 tokens")) << of_run.err;
  const Outcome measured = run_brisk({"eval", "export", "--data", "reviews.csv"}, folder);
  EXPECT_TRUE(has(measured.err, "in sequences of at most 12 tokens")) << measured.err;
  EXPECT_TRUE(has(measured.err, "120 of 120 texts are longer than 12 tokens")) << measured.err;
}

TEST_F(Classify, LearnsFromATableAndIsMeasuredAndAsked) {
  const Outcome trained = train(classify_job());
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const Json summary = read_json(folder / "run/summary.json");
  EXPECT_GT(summary["best"]["validation_accuracy"].get<double>(), 0.9) << trained.err;  // two of three are positive
  EXPECT_GT(summary["best"]["validation_macro_f1"].get<double>(), 0.85);
  EXPECT_FALSE(summary.contains("validation_perplexity"));
  const Json interval = summary["best"]["validation_accuracy_interval"];
  EXPECT_LT(interval[0], summary["best"]["validation_accuracy"]);
  EXPECT_EQ(read_json(folder / "run/labels.json"), Json({"negative", "positive"}));
  EXPECT_EQ(read_json(folder / "run/job.json")["data"]["text_field"], "review");
  for (const char* words : {"classes", "label \\ predicted", "the best so far", "brisk predict"})
    EXPECT_NE(trained.err.find(words), std::string::npos) << words << "\n" << trained.err;

  write_text(folder / "test.csv", reviews(100, 7, false));
  const Outcome measured = run_brisk({"eval", "run", "--data", "test.csv", "--json"}, folder);
  ASSERT_EQ(measured.exit_code, 0) << measured.err;
  const Json scores = Json::parse(measured.out);
  EXPECT_GT(scores["accuracy"].get<double>(), 0.9);
  EXPECT_EQ(scores["accuracy_interval"].size(), 2u);
  EXPECT_GT(scores["macro_f1"].get<double>(), 0.85);
  EXPECT_EQ(scores["examples"], 100);
  int64_t confused = 0;
  for (const Json& row : scores["confusion"]) {
    for (const Json& count : row) confused += count.get<int64_t>();
  }
  EXPECT_EQ(confused, 100);

  for (const char* command : {"eval", "predict"}) {
    const Outcome longer = run_brisk({command, "run", "--data", "test.csv", "--max-length", "25"}, folder);
    EXPECT_EQ(longer.exit_code, 2);
    EXPECT_NE(longer.err.find("--max-length 25: the model has 24 positions; use at most that many"), std::string::npos)
        << longer.err;
  }

  const Outcome asked = run_brisk({"predict", "run", "the plot was clever and the music came too"}, folder);
  ASSERT_EQ(asked.exit_code, 0) << asked.err;
  EXPECT_NE(asked.err.find("1 text in "), std::string::npos) << asked.err;
  const Json answer = Json::parse(asked.out);
  EXPECT_EQ(answer["label"], "positive");
  EXPECT_NEAR(answer["probabilities"]["positive"].get<double>() + answer["probabilities"]["negative"].get<double>(), 1,
              1e-9);
}

TEST_F(Classify, AnotherTableMayCallItsColumnsOtherwise) {
  ASSERT_EQ(train(classify_job()).exit_code, 0);
  write_text(folder / "other.csv", "words,verdict\nthe plot was clever,positive\nthe plot was awful,negative\n");
  for (const char* command : {"eval", "predict"}) {
    const Outcome refused = run_brisk({command, "run", "--data", "other.csv"}, folder);
    EXPECT_EQ(refused.exit_code, 2);
    EXPECT_NE(refused.err.find("no column \"review\" (--text-field); it has words, verdict"), std::string::npos)
        << refused.err;
  }
  const Outcome measured = run_brisk(
      {"eval", "run", "--data", "other.csv", "--text-field", "words", "--label-field", "verdict", "--json"}, folder);
  ASSERT_EQ(measured.exit_code, 0) << measured.err;
  EXPECT_EQ(Json::parse(measured.out)["examples"], 2);
  const Outcome missing = run_brisk({"eval", "run", "--data", "nowhere.csv"}, folder);
  EXPECT_EQ(missing.exit_code, 2);
  EXPECT_NE(missing.err.find("nowhere.csv: no such file or folder"), std::string::npos) << missing.err;
  EXPECT_EQ(missing.err.find("data.train"), std::string::npos) << missing.err;
}

TEST_F(Classify, IsToldThatValidationTextsAreInTraining) {
  Json job = classify_job();
  job["data"]["validation"] = "reviews.csv";
  job["training"]["max_steps"] = 1;
  const Outcome trained = train(job);
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_NE(trained.err.find("400 of the 400 texts of data.validation are also in data.train"), std::string::npos)
      << trained.err;
}

TEST_F(Classify, IsToldOfLabelsThatDifferInCapitalsAndOfRowsWithoutText) {
  std::string table = "text,label\n";
  const char* labels[] = {"Good", "good", "bad"};
  for (int i = 0; i < 90; ++i) table += "thing " + std::to_string(i) + "," + labels[i % 3] + "\n";
  write_text(folder / "reviews.csv", table);
  Json job = classify_job();
  job["training"]["max_steps"] = 1;
  job["data"]["validation_fraction"] = 0;
  const Outcome trained = train(job);
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_NE(trained.err.find("only in case count as different classes: \"Good\" and \"good\""), std::string::npos)
      << trained.err;
  EXPECT_EQ(trained.err.find("perplexity"), std::string::npos) << trained.err;
  EXPECT_EQ(trained.err.find("best validation"), std::string::npos) << trained.err;
  write_text(folder / "asked.jsonl", "{\"text\": \"thing\"}\n{\"other\": 1}\n");
  const Outcome answered = run_brisk({"predict", "run", "--data", "asked.jsonl"}, folder);
  EXPECT_EQ(lines_of(answered.out).size(), 2U);
  EXPECT_NE(answered.err.find("1 row without text"), std::string::npos) << answered.err;
}

TEST_F(Classify, StoppedEarlySaysAtWhichStep) {
  Json job = classify_job();
  job["training"]["eval_steps"] = 3;
  job["training"]["logging_steps"] = 100;
  job["training"]["early_stopping_patience"] = 1;
  job["training"]["best_by"] = "f1";
  job["training"]["learning_rate"] = 1e-14;  // nothing is learned
  const Outcome trained = train(job);
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_NE(trained.err.find("early stopping at step 6: no better validation macro F1"), std::string::npos)
      << trained.err;
  const Outcome reported = run_brisk({"report", "run", "--json"}, folder);
  EXPECT_EQ(Json::parse(reported.out)["status"], "early stopping");
}

TEST_F(Classify, AnswersInOrderFromATextAFileAndAPipe) {
  ASSERT_EQ(train(classify_job()).exit_code, 0);
  std::string lines, table = "review\n";
  for (int i = 0; i < 700; ++i) {
    const std::string text =
        std::string("the film was ") + (i % 3 == 0 ? "awful" : "lovely") + " and the plot came too";
    lines += text + "\n";
    table += text + "\n";
  }
  write_text(folder / "lines.txt", lines);
  write_text(folder / "table.csv", table);
  const Outcome file = run_brisk({"predict", "run", "--data", "lines.txt"}, folder);
  const Outcome rows = run_brisk({"predict", "run", "--data", "table.csv"}, folder);
  const Outcome pipe = run_brisk({"predict", "run"}, folder, {.input = lines});
  ASSERT_EQ(file.exit_code, 0) << file.err;
  const std::vector<Json> answers = lines_of(file.out);
  ASSERT_EQ(answers.size(), 700u);
  for (size_t i = 0; i < answers.size(); ++i) EXPECT_EQ(answers[i]["label"], i % 3 == 0 ? "negative" : "positive") << i;
  EXPECT_EQ(rows.out, file.out) << rows.err;
  EXPECT_EQ(lines_of(pipe.out).size(), 700u) << pipe.err;
}

TEST_F(Classify, SaysWhatItDoesNotRead) {
  Json job = classify_job();
  job["training"]["num_epochs"] = 1;
  job["training"]["max_length"] = 12;
  ASSERT_EQ(train(job).exit_code, 0);
  const auto said = [&](std::vector<std::string> more) {
    std::vector<std::string> command = {"predict", "run"};
    command.insert(command.end(), more.begin(), more.end());
    return run_brisk(command, folder).err;
  };
  EXPECT_TRUE(has(said({""}), "the text is empty"));
  EXPECT_TRUE(has(said({"a film", "--pair", "a plot"}), "it classifies single texts"));
  EXPECT_TRUE(has(said({"--data", "reviews.csv", "--pair-field", "sentiment"}), "remove --pair-field sentiment"));
  EXPECT_TRUE(has(said({"--data", "reviews.csv"}), "of 400 texts are longer than 12 tokens: only the beginning"));
  const Outcome evaluated = run_brisk({"eval", "run", "--data", "reviews.csv", "--threads", "1"}, folder);
  EXPECT_TRUE(has(evaluated.err, "of 400 texts are longer than 12 tokens")) << evaluated.err;
}

TEST_F(Classify, TakesWeightsByNameAndIsJudgedByF1) {
  Json job = classify_job();
  job["training"]["num_epochs"] = 2;
  job["training"]["best_by"] = "eval_f1_macro";
  job["training"]["class_weights"] = {{"positive", 1}, {"negative", 2}};
  const Outcome outcome = train(job);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_TRUE(has(outcome.err, "class weights: as given, 1 to 2")) << outcome.err;
  EXPECT_EQ(read_json(folder / "run/job.json")["training"]["best_by"], "macro_f1");
  EXPECT_EQ(read_json(folder / "run/job.json")["training"]["class_weights"]["negative"], 2);
  EXPECT_EQ(train(job, {"--output", "run", "--resume"}).exit_code, 0);
  job["training"]["class_weights"] = {{"positve", 1}};
  EXPECT_TRUE(has(refusal(job), "there is no class \"positve\"; the classes are negative, positive; did you mean"));
}

TEST_F(Classify, RefusesLabelsThatAreNoClassesUnlessToldToTakeThem) {
  std::string rows = "text,score\n";
  for (int i = 0; i < 60; ++i) rows += "a film of some kind," + std::to_string(i * 0.37) + "\n";
  write_text(folder / "scores.csv", rows);
  Json job = classify_job();
  job["data"]["train"] = "scores.csv";
  job["training"]["num_epochs"] = 1;
  EXPECT_TRUE(has(refusal(job), "60 different numbers from 0 to 21.83 in 60 rows: measurements"));
  EXPECT_TRUE(has(train(job, {"--smoke-test"}).err, "measurements, and not classes"));
  job["data"]["allow_unusual_labels"] = true;
  const Outcome insisted = train(job);
  EXPECT_EQ(insisted.exit_code, 0) << insisted.err;
  EXPECT_TRUE(has(insisted.err, "warning: scores.csv: column \"score\": 60 different numbers")) << insisted.err;
}

TEST_F(Classify, ResumesToTheBit) {
  Json job = classify_job();
  job["training"]["save_steps"] = 7;
  job["training"]["eval_steps"] = 9;
  job["training"]["class_weights"] = "balanced";
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
}

TEST_F(Classify, GivesTheSameCurveWithTheLastLayerOnAllRows) {
  Json job = classify_job();
  job["model"]["dropout"] = 0;
  job["training"]["max_steps"] = 10;
  job["training"]["logging_steps"] = 1;
  ASSERT_EQ(train(job, {"--output", "first"}).exit_code, 0);
  job["training"]["prune_last_layer"] = false;
  ASSERT_EQ(train(job, {"--output", "all"}).exit_code, 0);
  const std::vector<Json> first = step_lines(metrics_of(folder / "first")),
                          all = step_lines(metrics_of(folder / "all"));
  ASSERT_EQ(first.size(), all.size());
  for (size_t i = 0; i < first.size(); ++i)
    EXPECT_NEAR(first[i]["loss"].get<double>(), all[i]["loss"].get<double>(), 1e-4) << i;
}

TEST_F(Classify, GoesOutToHuggingFaceAndStartsFromThere) {
  ASSERT_EQ(train(classify_job()).exit_code, 0);
  const Outcome exported = run_brisk({"export", "run", "--format", "huggingface", "--output", "hf"}, folder);
  ASSERT_EQ(exported.exit_code, 0) << exported.err;
  const char* text = "the ending was dull and the actor came too";
  const Outcome ours = run_brisk({"predict", "run", text, "--fp32"}, folder);
  const Outcome theirs = run_brisk({"predict", "hf", text, "--fp32"}, folder);
  ASSERT_EQ(theirs.exit_code, 0) << theirs.err;
  EXPECT_EQ(Json::parse(ours.out), Json::parse(theirs.out));

  Json job = classify_job();
  job["model"] = {{"checkpoint", "hf"}};
  job["training"]["max_steps"] = 1;
  job["training"]["learning_rate"] = 1e-6;
  const Outcome continued = train(job, {"--output", "more"});
  ASSERT_EQ(continued.exit_code, 0) << continued.err;
  EXPECT_GT(read_json(folder / "more/summary.json")["validation_accuracy"].get<double>(), 0.9) << continued.err;
}

TEST_F(Classify, MasksWordsFirstAndThenLearnsClassesWithFewerLayers) {
  Json job = classify_job();
  job["task"] = "mlm";
  job["training"]["mlm_probability"] = 0.3;
  const Outcome masked = train(job, {"--output", "words"});
  ASSERT_EQ(masked.exit_code, 0) << masked.err;
  const auto lines = step_lines(metrics_of(folder / "words"));
  EXPECT_LT(lines.back()["loss"].get<double>(), 0.8 * lines.front()["loss"].get<double>());

  job = classify_job();
  job["model"] = {{"from", "words"}, {"num_layers", 1}};
  job["training"]["num_epochs"] = 6;
  const Outcome student = train(job);
  ASSERT_EQ(student.exit_code, 0) << student.err;
  EXPECT_NE(student.err.find("its layer is initialised from layer 0 of the source's 2"), std::string::npos)
      << student.err;
  EXPECT_NE(student.err.find("new weights: "), std::string::npos) << student.err;
  EXPECT_GT(read_json(folder / "run/summary.json")["best"]["validation_accuracy"].get<double>(), 0.8);
}

TEST_F(Classify, TrainsARobertaWithAByteLevelVocabularyOfItsOwn) {
  Json job = classify_job();
  job["model"]["type"] = "roberta";
  job["task"] = "mlm";
  job["training"]["num_epochs"] = 2;
  Outcome trained = train(job, {"--output", "words"});
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_TRUE(has(trained.err, "tokenizer: byte-level BPE of 300 entries, trained on 400 texts")) << trained.err;
  const Json tokenizer = read_json(folder / "words/tokenizer.json");
  EXPECT_EQ(tokenizer["model"]["type"], "BPE");
  int id = 0;
  for (const char* special : {"<s>", "<pad>", "</s>", "<unk>", "<mask>"}) {
    EXPECT_EQ(tokenizer["model"]["vocab"][special], id++) << special;
  }
  EXPECT_EQ(tokenizer["post_processor"]["type"], "RobertaProcessing");
  EXPECT_EQ(read_json(folder / "words/job.json")["data"]["lowercase"], false);
  ASSERT_EQ(run_brisk({"eval", "words", "--data", "reviews.csv"}, folder).exit_code, 0);
  ASSERT_EQ(run_brisk({"export", "words", "--format", "huggingface", "--output", "words-hf"}, folder).exit_code, 0);
  EXPECT_EQ(read_json(folder / "words-hf/config.json")["architectures"][0], "RobertaForMaskedLM");

  job["task"] = "classify";
  trained = train(job);
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const Outcome tried = train(job, {"--output", "again", "--dry-run"});
  EXPECT_TRUE(has(tried.err, "tokenizer: byte-level BPE of 300 entries, from ")) << tried.err;  // the cached one
  ASSERT_EQ(run_brisk({"export", "run", "--format", "huggingface", "--output", "hf"}, folder).exit_code, 0);
  const Json config = read_json(folder / "hf/config.json");
  EXPECT_EQ(config["architectures"][0], "RobertaForSequenceClassification");
  EXPECT_EQ(config["max_position_embeddings"], 24 + 2);
  EXPECT_EQ(config["pad_token_id"], 1);
  const Outcome of_run = run_brisk({"predict", "run", "--data", "reviews.csv", "--fp32"}, folder);
  const Outcome of_export = run_brisk({"predict", "hf", "--data", "reviews.csv"}, folder);
  ASSERT_EQ(of_export.exit_code, 0) << of_export.err;
  EXPECT_EQ(of_run.out, of_export.out);

  job["data"]["do_lower_case"] = true;
  EXPECT_TRUE(has(refusal(job), "data.lowercase = true is not possible: a byte-level BPE that is trained has capitals"))
      << refusal(job);
}

TEST_F(Classify, TellsCapitalsApartWhereItsVocabularyIsCased) {
  std::string table = "text,label\n";
  for (int i = 0; i < 200; ++i) {
    table += std::string(i % 2 == 0 ? "Apple" : "apple") + " number " + std::to_string(i / 2 % 40) + "," +
             (i % 2 == 0 ? "company" : "fruit") + "\n";
  }
  write_text(folder / "reviews.csv", table);
  Json job = classify_job();
  job["training"]["num_epochs"] = 8;
  job["data"]["do_lower_case"] = false;
  Outcome trained = train(job);
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_TRUE(has(trained.err, "read data.do_lower_case as data.lowercase")) << trained.err;
  EXPECT_TRUE(has(trained.err, "tokenizer: cased WordPiece of ")) << trained.err;
  EXPECT_EQ(read_json(folder / "run/tokenizer.json")["normalizer"]["lowercase"], false);
  EXPECT_EQ(read_json(folder / "run/summary.json")["best"]["validation_accuracy"], 1);
  EXPECT_TRUE(has(run_brisk({"predict", "run", "Apple number 7"}, folder).out, "\"label\":\"company\""));

  // The default is as it was: without capitals the two are the same.
  job["data"].erase("do_lower_case");
  trained = train(job, {"--output", "lower"});
  EXPECT_TRUE(has(trained.err, "tokenizer: lower-case WordPiece of ")) << trained.err;
  EXPECT_LT(read_json(folder / "lower/summary.json")["best"]["validation_accuracy"].get<double>(), 0.8);
  EXPECT_EQ(read_json(folder / "lower/job.json")["data"]["lowercase"], true);
  const Outcome resumed =
      run_brisk({"train", "job.json", "--output", "lower", "--resume", "--set", "do_lower_case=false"}, folder);
  EXPECT_NE(resumed.exit_code, 0) << resumed.err;
  EXPECT_TRUE(has(resumed.err, "data.lowercase")) << resumed.err;
}

TEST_F(Classify, FreezesWhatItIsTold) {
  ASSERT_EQ(train(classify_job(), {"--output", "base"}).exit_code, 0);
  Json job = classify_job();
  job["model"] = {{"from", "base"}};
  job["training"]["freeze"] = 1;
  job["training"]["max_steps"] = 3;
  const Outcome frozen = train(job);
  ASSERT_EQ(frozen.exit_code, 0) << frozen.err;
  EXPECT_NE(frozen.err.find("the rest is frozen"), std::string::npos) << frozen.err;
  EXPECT_EQ(run_brisk({"predict", "run", "the plot was clever"}, folder).exit_code, 0);
}

TEST_F(Classify, ComputesFrozenLayersOnceAndGivesTheSameCurve) {
  ASSERT_EQ(train(classify_job(), {"--output", "base"}).exit_code, 0);
  Json job = classify_job();
  job["model"] = {{"from", "base"}};
  job["data"]["cache_dir"] = folder / "cache";
  for (const int layers : {1, 2}) {
    job["training"]["freeze"] = layers;
    const std::string number = std::to_string(layers);
    job["training"]["cache_frozen"] = true;
    job["training"]["measure_micro_batch"] = layers == 2;
    const Outcome once = train(job, {"--output", "once" + number});
    ASSERT_EQ(once.exit_code, 0) << once.err;
    const size_t measured = once.err.find("micro-batch: ");  // of what is left to compute
    EXPECT_EQ(measured != std::string::npos, layers == 2) << once.err;
    EXPECT_LT(once.err.find("frozen layers: "), measured) << once.err;
    job["training"]["measure_micro_batch"] = false;
    EXPECT_NE(once.err.find("the activations of the first " + number + " were computed and are in"), std::string::npos)
        << once.err;
    job["training"]["cache_frozen"] = false;
    const Outcome each = train(job, {"--output", "each" + number});
    ASSERT_EQ(each.exit_code, 0) << each.err;
    EXPECT_EQ(each.err.find("the activations of the first"), std::string::npos) << each.err;

    const auto fast = step_lines(metrics_of(folder / ("once" + number)));
    const auto plain = step_lines(metrics_of(folder / ("each" + number)));
    ASSERT_EQ(fast.size(), plain.size());
    for (size_t i = 0; i < fast.size(); ++i)
      EXPECT_NEAR(fast[i]["loss"].get<double>(), plain[i]["loss"].get<double>(), 1e-5) << i;
    EXPECT_EQ(read_json(folder / ("once" + number + "/summary.json"))["validation_accuracy"],
              read_json(folder / ("each" + number + "/summary.json"))["validation_accuracy"]);
    const auto share = [&](const std::string& run) {
      return Json::parse(
                 run_brisk({"predict", run, "the plot was clever", "--fp32"}, folder).out)["probabilities"]["positive"]
          .get<double>();
    };
    EXPECT_NEAR(share("once" + number), share("each" + number), 1e-5);
  }
}

TEST_F(Classify, GoesOnWithComputedLayersWhereItStopped) {
  ASSERT_EQ(train(classify_job(), {"--output", "base"}).exit_code, 0);
  Json job = classify_job();
  job["model"] = {{"from", "base"}};
  job["data"]["cache_dir"] = folder / "cache";
  job["training"]["freeze"] = 1;
  job["training"]["save_steps"] = 7;
  job["training"]["eval_steps"] = 9;
  ASSERT_EQ(train(job, {"--output", "whole"}).exit_code, 0);
  Process process({"train", "job.json", "--output", "killed"}, folder);
  ASSERT_TRUE(process.wait_for("step 18: validation"));
  process.send(SIGKILL);
  process.finish();
  std::filesystem::remove_all(folder / "base");  // the frozen weights are the run's own by now
  const Outcome resumed = train(job, {"--output", "killed", "--resume"});
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_NE(resumed.err.find("the activations of the first 1 were in"), std::string::npos) << resumed.err;
  EXPECT_EQ(curve_of(folder / "killed"), curve_of(folder / "whole"));
  EXPECT_EQ(last_model_bytes(folder / "killed"), last_model_bytes(folder / "whole"));
}

TEST_F(Classify, DoesNotKeepWhatItReadsOnceOrWhatDropoutChanges) {
  ASSERT_EQ(train(classify_job(), {"--output", "base"}).exit_code, 0);
  Json job = classify_job();
  job["model"] = {{"from", "base"}};
  job["training"]["freeze"] = 1;
  job["training"]["num_epochs"] = 1;
  const Outcome short_run = train(job, {"--output", "short"});
  ASSERT_EQ(short_run.exit_code, 0) << short_run.err;
  EXPECT_EQ(short_run.err.find("the activations"), std::string::npos) << short_run.err;
  job["training"]["num_epochs"] = 2;
  job["training"]["frozen_dropout"] = true;
  const Outcome drops = train(job, {"--output", "drops"});
  ASSERT_EQ(drops.exit_code, 0) << drops.err;
  EXPECT_EQ(drops.err.find("the activations"), std::string::npos) << drops.err;
}

TEST_F(Classify, LearnsFromATeacherWhoseAnswersAreComputedOnce) {
  ASSERT_EQ(train(classify_job(), {"--output", "teacher"}).exit_code, 0);
  Json job = classify_job();
  job["model"]["num_layers"] = 1;
  job["model"]["vocab_size"] = 200;  // a tokenizer of its own: the teacher reads with its own, too
  job["data"]["cache_dir"] = folder / "cache";
  job["training"]["teacher"] = "teacher";
  job["training"]["num_epochs"] = 6;
  const Outcome student = train(job);
  ASSERT_EQ(student.exit_code, 0) << student.err;
  EXPECT_NE(student.err.find("its logits for 400 texts are in"), std::string::npos) << student.err;
  EXPECT_GT(read_json(folder / "run/summary.json")["best"]["validation_accuracy"].get<double>(), 0.9);
  job["training"]["max_steps"] = 2;
  const Outcome again = train(job, {"--output", "again"});
  ASSERT_EQ(again.exit_code, 0) << again.err;
  EXPECT_NE(again.err.find("its logits for 400 texts were in"), std::string::npos) << again.err;
  EXPECT_EQ(run_brisk({"train", "job.json", "--smoke-test"}, folder).exit_code, 0);
}

TEST_F(Classify, RefusesATeacherOfOtherClasses) {
  ASSERT_EQ(train(classify_job(), {"--output", "teacher"}).exit_code, 0);
  std::string other = reviews(100, 2);
  for (size_t at = 0; (at = other.find(",negative\n", at)) != std::string::npos;) other.replace(at, 10, ",bad\n");
  write_text(folder / "reviews.csv", other);
  Json job = classify_job();
  job["training"]["teacher"] = "teacher";
  const std::string message = refusal(job);
  EXPECT_NE(message.find("training.teacher: teacher names the classes negative, positive, and the data has bad, "
                         "positive"),
            std::string::npos)
      << message;
  job["training"].erase("teacher");
  job["training"]["distillation_weight"] = 0.9;
  EXPECT_NE(refusal(job).find("does not apply without training.teacher"), std::string::npos);
}

TEST_F(Classify, SmokeTestGoesThroughEveryStageAndSaysWhatItsAccuracyMeans) {
  Json job = classify_job();
  job["model"] = {{"d_model", 768}, {"num_layers", 12}};
  const Outcome outcome = train(job, {"--smoke-test"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  for (const char* words : {"  predict ", "  evaluate ", "  export ", "of 2 classes", "after 3 steps on a few rows"})
    EXPECT_NE(outcome.err.find(words), std::string::npos) << words << "\n" << outcome.err;
  EXPECT_EQ(outcome.err.find("training did more harm"), std::string::npos) << "of three steps: " << outcome.err;
  EXPECT_FALSE(std::filesystem::exists(folder / "runs"));
}

TEST_F(Classify, ComparesRunsByTheirAccuracy) {
  ASSERT_EQ(train(classify_job(), {"--output", "a"}).exit_code, 0);
  Json job = classify_job();
  job["training"]["max_steps"] = 2;
  ASSERT_EQ(train(job, {"--output", "b"}).exit_code, 0);
  const Outcome outcome = run_brisk({"compare", "a", "b"}, folder);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  for (const char* words : {"accuracy", "F1", "model size"})
    EXPECT_NE(outcome.out.find(words), std::string::npos) << words << outcome.out;
}

TEST_F(Classify, RefusesALabelThatOnlyValidationHas) {
  write_text(folder / "test.csv", "review,sentiment\na fine film,positive\na strange film,mixed\n");
  Json job = classify_job();
  job["data"]["validation"] = {"test.csv"};
  const std::string message = refusal(job);
  EXPECT_NE(message.find("mixed"), std::string::npos) << message;
}

TEST_F(Classify, RefusesASingleClass) {
  write_text(folder / "reviews.csv", "review,sentiment\na,positive\nb,positive\nc,positive\n");
  const std::string message = refusal(classify_job());
  EXPECT_NE(message.find("positive"), std::string::npos) << message;
}

TEST_F(Classify, RefusesAColumnThatIsNotThereAndNamesThoseThatAre) {
  Json job = classify_job();
  job["data"]["label_field"] = "stars";
  const std::string message = refusal(job);
  EXPECT_NE(message.find("stars"), std::string::npos) << message;
  EXPECT_NE(message.find("sentiment"), std::string::npos) << message;
}

TEST_F(Classify, RefusesACheckpointOfAnotherArchitecture) {
  write_text(folder / "text.txt", english_like_text(200));
  Json language_model = small_job();
  ASSERT_EQ(run_brisk({"train", write_job(folder, language_model, "lm.json"), "--output", "lm"}, folder).exit_code, 0);
  Json job = classify_job();
  job["model"] = {{"from", "lm"}};
  const std::string message = refusal(job);
  EXPECT_NE(message.find("name a bert, distilbert, roberta"), std::string::npos) << message;
  const Outcome asked = run_brisk({"predict", "lm", "a text"}, folder);
  EXPECT_EQ(asked.exit_code, 2);
  EXPECT_NE(asked.err.find("names no classes"), std::string::npos) << asked.err;
}

}  // namespace
}  // namespace brisk::program
