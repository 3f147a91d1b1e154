// Reading runs back: whole ones, half-written ones, those of an earlier brisk, and folders that are none.
#include "report/read/run_record.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "job/job.h"
#include "report/page/compare.h"
#include "report/page/report_page.h"
#include "report/read/run_facts.h"
#include "support/scratch_folder.h"

namespace brisk {
namespace {

using nlohmann::json;
using test::put_contents;
using test::ScratchFolder;

std::string step_line(int64_t step, double loss, double seconds) {
  return json{{"step", step},         {"epoch", 1},
              {"tokens", 100 * step}, {"loss", loss},
              {"accuracy", 0.1},      {"learning_rate", 1e-3},
              {"gradient_norm", 0.5}, {"tokens_per_second", 1000.0},
              {"step_ms", 100.0},     {"seconds", seconds}}
             .dump() +
         "\n";
}

std::string evaluation_line(int64_t step, double loss, double seconds) {
  return json{{"step", step},
              {"epoch", 1},
              {"validation_loss", loss},
              {"validation_perplexity", std::exp(loss)},
              {"validation_accuracy", 0.2},
              {"seconds", seconds}}
             .dump() +
         "\n";
}

std::string class_evaluation_line(int64_t step, double loss, double accuracy, double seconds) {
  return json{{"step", step},
              {"epoch", 1},
              {"validation_loss", loss},
              {"validation_accuracy", accuracy},
              {"validation_accuracy_interval", {accuracy - 0.02, accuracy + 0.02}},
              {"validation_macro_f1", accuracy - 0.01},
              {"seconds", seconds}}
             .dump() +
         "\n";
}

const char* const kClassifierJob = R"({"task": "classify", "model": {"type": "bert"}, "training": {"max_steps": 40}})";

std::string stretch_line(int64_t epoch, int64_t step, int64_t steps, const json& ledger) {
  double seconds = 0;
  for (const auto& [phase, value] : ledger.items()) seconds += value.get<double>();
  return json{{"kind", "stretch"},     {"epoch", epoch},     {"step", step},       {"steps", steps},
              {"tokens", 100 * steps}, {"sequences", steps}, {"seconds", seconds}, {"peak_memory_bytes", 1 << 20},
              {"ledger", ledger}}
             .dump() +
         "\n";
}

// What was evaluated, so that runs can be compared: the same for all that are written here.
std::string start_line(int64_t step, int64_t process = 0, const json& more = json::object()) {
  json line = {{"kind", "start"},     {"step", step},         {"time", "2026-01-02T03:04:05Z"},
               {"host", "elsewhere"}, {"process", process},   {"cpu", "Abacus <3000>"},
               {"threads", 2},        {"peak_gflops", 100.0}, {"parameters", 1000},
               {"total_steps", 40},   {"flop_per_token", 1e7}};
  line.update({{"validation_fingerprint", "1"}, {"tokenizer_fingerprint", "2"}, {"classes_fingerprint", "3"}});
  if (more.is_object()) line.update(more);
  return line.dump() + "\n";
}

class RunFolder : public ::testing::Test {
 protected:
  RunFolder() { put_contents(folder / "job.json", R"({"training": {"batch_size": 8, "max_steps": 40}})"); }
  void put(const std::string& name, const std::string& text) { put_contents(folder / name, text); }
  RunRecord read() { return read_run(folder.path()); }
  ScratchFolder folder;
};

TEST_F(RunFolder, TellsWhatTheRunReached) {
  put("metrics.jsonl", step_line(10, 5, 1) + evaluation_line(10, 5.5, 1.5) + step_line(20, 4, 2) +
                           evaluation_line(20, 4.5, 2.5) + step_line(30, 3, 3) + evaluation_line(30, 4.6, 3.5));
  put("ledger.jsonl", start_line(0) + stretch_line(1, 20, 20, {{"start_up", 0.5}, {"optimizer", 0.5}, {"loss", 1.0}}) +
                          stretch_line(1, 30, 10, {{"loss", 0.5}}) + stretch_line(2, 30, 0, {{"evaluation", 1.0}}) +
                          R"({"kind": "end", "step": 30, "ended": "early stopping"})" + "\n");
  const RunRecord run = read();
  EXPECT_EQ(run.status, "early stopping");
  EXPECT_EQ(run.best_evaluation()->metrics.value("loss"), 4.5);
  EXPECT_EQ(run.last_evaluation()->metrics.value("loss"), 4.6);
  EXPECT_EQ(run.best_evaluation()->tokens, 2000);
  EXPECT_EQ(run.step, 30);
  EXPECT_EQ(run.tokens, 3000);
  EXPECT_EQ(run.seconds, 3.5);
  EXPECT_EQ(run.parameters, 1000);
  // 3000 tokens in the 2 s that were neither start-up nor evaluation; 1e7 FLOP each.
  EXPECT_DOUBLE_EQ(run.tokens_per_second, 1500);
  EXPECT_DOUBLE_EQ(run.utilisation, 0.15);
  ASSERT_EQ(run.epochs.size(), 2u);
  EXPECT_EQ(run.epochs[0].steps, 30);
  EXPECT_EQ(run.epochs[0].ledger, (PhaseSeconds{{"start_up", 0.5}, {"loss", 1.5}, {"optimizer", 0.5}}))
      << "in the ledger's order, however the file has it";
  EXPECT_TRUE(run.notes.empty());
  EXPECT_EQ(seconds_to(run, standard_metric("loss", 5.0)), 2.5);
  EXPECT_TRUE(std::isnan(seconds_to(run, standard_metric("loss", 1.0))));
}

TEST_F(RunFolder, AHalfWrittenLastLineIsLeftOutAndSaid) {
  const std::string whole = step_line(10, 5, 1);
  put("metrics.jsonl", whole + whole.substr(0, 30));
  const RunRecord run = read();
  EXPECT_EQ(run.steps.size(), 1u);
  EXPECT_EQ(run.tokens_per_second, 1000) << "no ledger: the line's own speed";
  ASSERT_EQ(run.notes.size(), 1u);
  EXPECT_NE(run.notes[0].find("metrics.jsonl: the last line is incomplete"), std::string::npos);
  EXPECT_NE(report_page(run).find("the last line is incomplete"), std::string::npos);
}

TEST_F(RunFolder, GarbageInItsFilesIsLeftOut) {
  put("metrics.jsonl", "\xFF\xFE\n[1]\n{\"loss\": 3}\n{\"step\": \"ten\", \"loss\": 3}\n" + step_line(10, 5, 1));
  put("ledger.jsonl", "{}\n{\"kind\": \"stretch\", \"ledger\": 3, \"epoch\": \"x\"}\n");
  put("samples.jsonl", "{\"step\": null}\nnull\n");
  put("summary.json", "[");
  const RunRecord run = read();
  EXPECT_EQ(run.steps.size(), 1u);
  EXPECT_EQ(run.notes.size(), 3u);
  EXPECT_FALSE(report_page(run).empty());
}

TEST_F(RunFolder, WithoutAnEvaluationOrALineIsARunStill) {
  const RunRecord nothing = read();
  EXPECT_EQ(nothing.status, "unfinished");
  EXPECT_EQ(nothing.best_evaluation(), nullptr);
  const std::string page = report_page(nothing);
  EXPECT_NE(page.find("no logged step yet"), std::string::npos);
  EXPECT_NE(page.find("nothing to draw yet"), std::string::npos);
  EXPECT_EQ(page.find("nan"), std::string::npos);
  EXPECT_EQ(json::parse(report_json(nothing))["best_validation_loss"], nullptr);
  const Comparison comparison = compare_runs({nothing, nothing});
  EXPECT_EQ(comparison_text(comparison).find("nan"), std::string::npos);
  EXPECT_EQ(comparison_page(comparison).find("nan"), std::string::npos);
  EXPECT_TRUE(json::parse(comparison_json(comparison))["common_loss"].is_null());
}

TEST_F(RunFolder, OfAnEarlierBriskHasItsFactsFromTheSummary) {
  json line = json::parse(step_line(10, 5, 1));
  line.erase("seconds");
  put("metrics.jsonl", line.dump() + "\n");
  put("summary.json",
      R"({"ended": "finished", "wall_seconds": 12, "utilisation": 0.5, "parameters": 7, "ledger": {"loss": 2, "copy": 0}})");
  const RunRecord run = read();
  EXPECT_EQ(run.status, "finished");
  EXPECT_EQ(run.seconds, 12);
  EXPECT_EQ(run.utilisation, 0.5);
  EXPECT_EQ(run.ledger, (PhaseSeconds{{"loss", 2}}));
  EXPECT_DOUBLE_EQ(run.steps[0].seconds, 1.0) << "ten steps of 100 ms";
}

TEST_F(RunFolder, AProcessThatNeitherEndedNorLivesLeftItUnfinished) {
  put("ledger.jsonl", start_line(0) + R"({"kind": "end", "ended": "interrupted"})" + "\n" + start_line(20, 1));
  EXPECT_EQ(read().status, "unfinished");
  EXPECT_EQ(read().processes.size(), 2u);
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  json start = json::parse(start_line(20, ::getpid()));
  start["host"] = host.data();
  put("ledger.jsonl", start.dump() + "\n");
  EXPECT_EQ(read().status, "running");
}

TEST_F(RunFolder, TellsSettingsFromDefaults) {
  Job job = job_from_json_text(R"({"training": {"batch_size": 8}, "model": {"d_model": 128}})", "job");
  resolve_defaults(job);
  put("job.json", job_to_json_text(job));
  std::map<std::string, Setting> settings;
  for (const Setting& setting : read().settings) settings[setting.path] = setting;
  EXPECT_EQ(settings["training.batch_size"].value, "8");
  EXPECT_FALSE(settings["training.batch_size"].is_default);
  EXPECT_FALSE(settings["model.d_model"].is_default);
  EXPECT_TRUE(settings["model.d_ff"].is_default) << "brisk chose it: " << settings["model.d_ff"].value;
  EXPECT_EQ(settings["model.d_ff"].value, "512");
  EXPECT_TRUE(settings["training.learning_rate"].is_default);
  EXPECT_TRUE(settings["training.seed"].is_default);
}

TEST_F(RunFolder, ASettingOfALaterBriskIsShownAsItStands) {
  put("job.json", R"({"training": {"batch_size": 8, "warp_drive": [1, 2]}})");
  const RunRecord run = read();
  ASSERT_EQ(run.notes.size(), 1u);
  EXPECT_NE(run.notes[0].find("warp_drive"), std::string::npos);
  ASSERT_EQ(run.settings.size(), 2u);
  EXPECT_EQ(run.settings[1].value, "[1,2]");
}

TEST(ReadRun, RefusesWhatIsNoRun) {
  const ScratchFolder folder;
  put_contents(folder / "file", "");
  const auto message = [&](const std::string& path) { return test::message_of<UserError>([&] { read_run(path); }); };
  EXPECT_NE(message(folder.path()).find("not a run directory: it has no job.json"), std::string::npos);
  EXPECT_NE(message(folder / "missing").find("there is no such folder"), std::string::npos);
  EXPECT_NE(message(folder / "file").find("it is a file"), std::string::npos);
}

TEST_F(RunFolder, NothingOfTheUsersIsMarkup) {
  const std::string attack = "<script>alert('x')</script>\" onload=\"y & z";
  put("samples.jsonl", json{{"step", 1}, {"prompt", attack}, {"text", attack + "\x1b[31m\u0007 end"}}.dump() + "\n");
  put("job.json", json{{"comment", attack}, {"data", {{"train", attack}}}}.dump());
  json start = json::parse(start_line(0));
  start["cpu"] = start["host"] = start["time"] = start["isa"] = attack;
  put("ledger.jsonl", start.dump() + "\n" + stretch_line(1, 1, 1, {{attack, 1.0}}) +
                          json{{"kind", "end"}, {"ended", attack}}.dump() + "\n");
  const RunRecord run = read();
  Comparison comparison = compare_runs({run, run});
  comparison.labels = {attack, attack};
  comparison.differences = {{attack, {attack, attack}}};
  for (const std::string& page : {report_page(run), comparison_page(comparison)}) {
    EXPECT_EQ(page.find("<script>alert"), std::string::npos);
    EXPECT_EQ(page.find("\" onload"), std::string::npos);
    EXPECT_EQ(page.find('\x1b'), std::string::npos);
    EXPECT_EQ(page.find('\x07'), std::string::npos);
    EXPECT_NE(page.find("&lt;script&gt;alert(&#39;x&#39;)"), std::string::npos);
  }
}

// A task has a column of its own where tasks differ, and metrics have names.
TEST_F(RunFolder, NothingOfAComparedRunIsMarkup) {
  const std::string attack = "<script>alert('x')</script>\" onload=\"y";
  put("metrics.jsonl", json{{"step", 1}, {"validation_" + attack, 1.0}, {"validation_loss", 2.0}}.dump() + "\n");
  const RunRecord plain = read();
  put("job.json", json{{"task", attack}, {attack, attack}, {"training", {{"best_by", attack}}}}.dump());
  put("evaluation.json", json{{"classes", {{{"label", attack}, {"examples", 3}}}}, {"accuracy", 1}}.dump());
  const RunRecord strange = read();
  EXPECT_EQ(strange.task, attack);
  for (const std::string& page :
       {report_page(strange), comparison_page(compare_runs({plain, strange})),
        comparison_page(compare_runs({strange, plain, strange, strange, plain, plain, strange, plain}))}) {
    EXPECT_EQ(page.find("<script>alert"), std::string::npos);
    EXPECT_EQ(page.find("\" onload"), std::string::npos);
    EXPECT_NE(page.find("&lt;script&gt;alert(&#39;x&#39;)"), std::string::npos);
  }
}

// Files that somebody made to take the stack, the memory or the day.
TEST_F(RunFolder, IsReadWhateverItsFilesHold) {
  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
  std::string keys = "{\"step\": 1, \"loss\": 1";
  for (int i = 0; i < 5000; ++i) keys += ", \"validation_" + std::to_string(i) + "\": 1";
  put("job.json", "{\"a\": " + deep + "}");
  put("metrics.jsonl", deep + "\n" + keys + "}\n" + step_line(10, 1e17, 1) + step_line(20, 1e17 + 16, 2) +
                           "{\"step\": 1e300, \"loss\": -1e308, \"seconds\": 1e308}\n" + std::string(5 << 20, 'x') +
                           "\n");
  put("ledger.jsonl", "{\"kind\": \"stretch\", \"ledger\": " + deep + "}\n" + start_line(0));
  put("samples.jsonl", deep);
  put("summary.json", deep);
  put("evaluation.json", deep);
  const RunRecord run = read();
  EXPECT_EQ(run.steps.size(), 3u);
  EXPECT_GE(run.notes.size(), 5u);
  EXPECT_NE(run.notes[0].find("nested more than 32 levels deep"), std::string::npos) << run.notes[0];
  EXPECT_LT(report_page(run).size(), size_t{1} << 20);
  EXPECT_LT(comparison_page(compare_runs({run, run})).size(), size_t{1} << 20);
  EXPECT_TRUE(json::accept(report_json(run)));
  EXPECT_TRUE(json::accept(comparison_json(compare_runs({run, run}))));
}

TEST_F(RunFolder, PutsNothingIntoATerminal) {
  const std::string attack = "\x1b]0;gone\x07\x1b[2J";
  put("job.json", json{{"task", attack}, {"training", {{"batch_size", attack}}}}.dump());
  put("ledger.jsonl", json{{"kind", "end"}, {"ended", attack}}.dump() + "\n");
  const RunRecord strange = read();
  put("job.json", "{}");
  RunRecord plain = read();
  plain.name = attack;
  const std::string text = comparison_text(compare_runs({plain, strange}));
  EXPECT_EQ(text.find('\x1b'), std::string::npos) << text;
  EXPECT_EQ(text.find('\x07'), std::string::npos) << text;
  EXPECT_NE(text.find("\\x1b]0;gone\\x07"), std::string::npos) << text;
}

TEST_F(RunFolder, PagesNeedNoNetwork) {
  put("metrics.jsonl", step_line(10, 5, 1) + evaluation_line(10, 5.5, 1.5));
  for (const std::string& page : {report_page(read()), comparison_page(compare_runs({read(), read()}))}) {
    for (const char* part : {"http://", "https://", "src=", "url(", "@import"}) {
      EXPECT_EQ(page.find(part), std::string::npos) << part;
    }
    EXPECT_NE(page.find("prefers-color-scheme:dark"), std::string::npos);
  }
}

TEST_F(RunFolder, AClassifierIsJudgedByItsAccuracyUnlessItsJobSaysOtherwise) {
  put("job.json", kClassifierJob);
  put("metrics.jsonl", class_evaluation_line(10, 0.5, 0.8, 1) + class_evaluation_line(20, 0.6, 0.9, 2) +
                           class_evaluation_line(30, 0.4, 0.85, 3));
  EXPECT_EQ(read().best_evaluation()->step, 20);
  EXPECT_EQ(seconds_to(read(), standard_metric("accuracy", 0.82)), 2);
  EXPECT_TRUE(std::isnan(seconds_to(read(), standard_metric("accuracy", 0.91))));
  json job = json::parse(kClassifierJob);
  job["training"]["best_by"] = "loss";
  put("job.json", job.dump());
  EXPECT_EQ(read().best_evaluation()->step, 30);
  job["training"]["best_by"] = "f1";
  put("job.json", job.dump());
  EXPECT_EQ(read().best_by, "macro_f1");
  EXPECT_EQ(read().best_evaluation()->step, 20);
}

TEST_F(RunFolder, AClassifiersPageSpeaksOfClasses) {
  put("job.json", kClassifierJob);
  put("metrics.jsonl", step_line(10, 0.7, 1) + class_evaluation_line(10, 0.5, 0.8, 1));
  put("evaluation.json", json{{"accuracy", 0.8},
                              {"macro_f1", 0.79},
                              {"macro_precision", 0.81},
                              {"macro_recall", 0.78},
                              {"classes",
                               {{{"label", "good"}, {"examples", 60}, {"predictions", 55}, {"precision", 0.875}},
                                {{"label", "<b>bad"}, {"examples", 40}, {"predictions", 45}, {"recall", 0.625}}}},
                              {"confusion", {{45, 15}, {5, 35}}}}
                             .dump());
  const std::string page = report_page(read());
  for (const char* part :
       {"validation accuracy 80.00 % (95 %: 78.00 to 82.00 %), loss 0.5000, macro F1 79.00 %", "87.50 %", "62.50 %",
        "&lt;b&gt;bad", ">15</span>", "100 examples", "in nats, of the examples"}) {
    EXPECT_NE(page.find(part), std::string::npos) << part;
  }
  for (const char* part : {"<b>bad", "of the tokens", "perplexity", "nan"}) {
    EXPECT_EQ(page.find(part), std::string::npos) << part;
  }
}

TEST_F(RunFolder, OfManyClassesTheMistakesAreListed) {
  json classes = json::array();
  for (int i = 0; i < 150; ++i) classes.push_back({{"label", "c" + std::to_string(i)}, {"examples", i}});
  put("job.json", kClassifierJob);
  put("evaluation.json", json{{"classes", classes},
                              {"confusion",
                               {{{"label", "c3"}, {"predicted", "c3"}, {"examples", 900}},
                                {{"label", "c4"}, {"predicted", "c5"}, {"examples", 77}},
                                {{"label", "nobody"}, {"predicted", "c5"}, {"examples", 55}}}}}
                             .dump());
  const std::string page = report_page(read());
  EXPECT_NE(page.find("<th scope=\"row\">c4</th><td>c5</td><td>77</td>"), std::string::npos);
  EXPECT_EQ(page.find("<td>900</td>"), std::string::npos) << "no mistake";
  EXPECT_NE(page.find("130 rarer classes"), std::string::npos);
}

TEST_F(RunFolder, AnEvaluationFileThatIsGarbageIsLeftOut) {
  put("job.json", kClassifierJob);
  for (const char* text :
       {"[", "{}", R"({"classes": 3})", R"({"classes": [3, {"label": 4}], "confusion": [3, [1, "x"]]})"}) {
    put("evaluation.json", text);
    EXPECT_EQ(report_page(read()).find("nan"), std::string::npos) << text;
  }
  put("evaluation.json", "{}");
  ASSERT_EQ(read().notes.size(), 1u);
  EXPECT_NE(read().notes[0].find("evaluation.json: it has no classes"), std::string::npos);
}

TEST_F(RunFolder, OfMaskedWordsSaysWhatTheFiguresAreOf) {
  put("job.json", R"({"task": "mlm", "model": {"type": "bert"}, "training": {"max_steps": 40}})");
  put("metrics.jsonl", step_line(10, 5, 1) + evaluation_line(10, 5.5, 1.5));
  const std::string page = report_page(read());
  EXPECT_NE(page.find("Mean cross-entropy in nats, of the masked tokens."), std::string::npos);
  EXPECT_NE(page.find("Percent predicted correctly, of the masked tokens."), std::string::npos);
}

TEST_F(RunFolder, OfAStudentSaysThatItsTwoLossesAreOfDifferentThings) {
  put("metrics.jsonl", step_line(10, 5, 1) + class_evaluation_line(10, 0.5, 0.8, 1.5));
  put("job.json", kClassifierJob);
  EXPECT_EQ(report_page(read()).find("labels and teacher"), std::string::npos);
  put("job.json", R"({"task": "classify", "model": {"type": "bert"},
                      "training": {"max_steps": 40, "teacher": "big", "distillation_weight": 0.5}})");
  const std::string page = report_page(read());
  EXPECT_NE(page.find("training: labels and teacher"), std::string::npos);
  EXPECT_NE(page.find("validation: labels"), std::string::npos);
  EXPECT_NE(page.find("the two are not comparable"), std::string::npos);
}

TEST_F(RunFolder, OfAnImportedModelIsWholeWithoutACurve) {
  put("summary.json", R"({"ended": "imported", "parameters": 22000000})");
  const RunRecord run = read();
  EXPECT_EQ(run.status, "imported");
  const std::string page = report_page(run);
  EXPECT_NE(page.find("not trained here"), std::string::npos);
  EXPECT_NE(page.find("22.0M"), std::string::npos);
  for (const char* missing : {"unfinished", "yet", "<svg", "nan"}) {
    EXPECT_EQ(page.find(missing), std::string::npos) << missing;
  }
}

TEST_F(RunFolder, ShowsOnlySettingsThatHaveAPart) {
  const auto has = [&](const std::string& path) {
    const auto settings = read().settings;
    return std::any_of(settings.begin(), settings.end(), [&](const Setting& item) { return item.path == path; });
  };
  EXPECT_TRUE(has("training.muon_learning_rate"));
  for (const char* path :
       {"training.mlm_probability", "training.teacher", "training.distillation_weight",
        "training.distillation_temperature", "training.cache_frozen", "training.frozen_dropout", "training.lora_alpha"})
    EXPECT_FALSE(has(path)) << path;
  put("job.json", R"({"training": {"optimizer": "adamw"}})");
  EXPECT_FALSE(has("training.muon_learning_rate"));
  EXPECT_FALSE(has("training.muon_momentum"));
  put("job.json", kClassifierJob);
  EXPECT_FALSE(has("training.muon_learning_rate"));
  EXPECT_TRUE(has("training.class_weights"));
  EXPECT_FALSE(has("training.sample_prompts"));
  EXPECT_FALSE(has("training.distillation_weight"));
  put("job.json", R"({"task": "classify", "training": {"teacher": "runs/big"}})");
  EXPECT_TRUE(has("training.distillation_weight"));
}

TEST_F(RunFolder, ClassifiersAreComparedByAccuracyTimeAndSize) {
  put("job.json", kClassifierJob);
  put("ledger.jsonl", start_line(0));
  put("metrics.jsonl", class_evaluation_line(10, 0.3, 0.8, 1) + class_evaluation_line(20, 0.6, 0.9, 4));
  RunRecord slow = read();
  put("metrics.jsonl", class_evaluation_line(10, 0.9, 0.95, 2) + class_evaluation_line(20, 0.7, 0.89, 3));
  RunRecord fast = read();
  fast.name = "fast";
  const Comparison comparison = compare_runs({slow, fast});
  EXPECT_EQ(comparison.common.name, "accuracy");
  EXPECT_EQ(comparison.common.value, 0.9);
  EXPECT_EQ(comparison.seconds_to_common, (std::vector<double>{4, 2}));
  const std::string text = comparison_text(comparison);
  for (const char* part :
       {"95.00 %*", "93.00 to 97.00 %", "macro F1", "model size", "3.91 KiB", "time to accuracy 90.00 %"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
  EXPECT_EQ(text.find("perplexity"), std::string::npos) << text;
  const std::string page = comparison_page(comparison);
  EXPECT_NE(page.find("A validation accuracy of 90.00 % was reached first by fast"), std::string::npos);
  EXPECT_EQ(page.find("of the tokens"), std::string::npos);
  const json whole = json::parse(comparison_json(comparison));
  EXPECT_EQ(whole["common_accuracy"], 0.9);
  EXPECT_EQ(whole["runs"][1]["seconds_to_common_accuracy"], 2);
  EXPECT_EQ(whole["runs"][1]["model_bytes"], 4000);
}

TEST_F(RunFolder, LossesOfDifferentTasksAreNotCompared) {
  put("metrics.jsonl", evaluation_line(10, 3.9, 0.5));
  const RunRecord text = read();
  put("job.json", kClassifierJob);
  put("metrics.jsonl", class_evaluation_line(10, 0.3, 0.8, 1));
  const Comparison comparison = compare_runs({text, read()});
  EXPECT_TRUE(std::isnan(comparison.common.value));
  EXPECT_NE(comparison_text(comparison).find("the tasks differ"), std::string::npos);
  EXPECT_NE(comparison_page(comparison).find("the tasks differ"), std::string::npos);
  std::vector<std::string> accuracies;
  for (const ComparedColumn& column : compared_columns(comparison)) {
    const bool accuracy = column.title.starts_with("accuracy");
    EXPECT_TRUE(column.best == -1 || !(accuracy || column.title.find("loss") != std::string::npos)) << column.title;
    if (accuracy) accuracies.push_back(fmt::format("{}: {} {}", column.title, column.cells[0], column.cells[1]));
  }
  EXPECT_EQ(accuracies, (std::vector<std::string>{"accuracy, tokens: 20.00 % –", "accuracy, examples: – 80.00 %"}));
}

TEST_F(RunFolder, AComparisonFindsTheBestAndWhatDiffers) {
  put("ledger.jsonl", start_line(0));
  put("metrics.jsonl", step_line(10, 5, 1) + evaluation_line(10, 5.0, 1) + evaluation_line(20, 4.0, 2));
  RunRecord slow = read();
  put("metrics.jsonl", step_line(10, 5, 1) + evaluation_line(10, 3.9, 0.5) + evaluation_line(20, 3.5, 3));
  put("job.json", R"({"training": {"batch_size": 16, "max_steps": 40}, "comment": "faster"})");
  RunRecord fast = read();
  fast.name = "fast";
  const Comparison comparison = compare_runs({slow, fast});
  EXPECT_EQ(comparison.common.name, "loss");
  EXPECT_EQ(comparison.common.value, 4.0);
  EXPECT_EQ(comparison.seconds_to_common, (std::vector<double>{2, 0.5}));
  ASSERT_EQ(comparison.differences.size(), 1u) << "a comment is no difference";
  EXPECT_EQ(comparison.differences[0].path, "training.batch_size");
  EXPECT_EQ(comparison.differences[0].values, (std::vector<std::string>{"8", "16"}));
  const std::string text = comparison_text(comparison);
  EXPECT_NE(text.find("3.5000*"), std::string::npos) << text;
  EXPECT_NE(text.find("time to loss 4.0000"), std::string::npos) << text;
  const json whole = json::parse(comparison_json(comparison));
  EXPECT_EQ(whole["differences"]["training.batch_size"], json({8, 16}));
  EXPECT_EQ(whole["runs"][1]["best_validation_loss"], 3.5);
}

TEST_F(RunFolder, TwoRunsHaveRatiosOfSequencesAndEpochs) {
  const json of_epochs = {{"steps_per_epoch", 100}};
  put("metrics.jsonl", step_line(10, 5, 1));
  put("ledger.jsonl", start_line(0, 0, of_epochs) + stretch_line(1, 10, 10, {{"loss", 5.0}}));
  const RunRecord slow = read();
  put("ledger.jsonl", start_line(0, 0, of_epochs) + stretch_line(1, 10, 10, {{"loss", 2.0}}));
  std::map<std::string, ComparedColumn> columns;
  for (const ComparedColumn& column : compared_columns(compare_runs({slow, read()}))) columns[column.title] = column;
  EXPECT_EQ(columns["sequences/s"].cells, (std::vector<std::string>{"2", "5"}));
  EXPECT_EQ(columns["sequences/s"].ratio, "2.50x");
  EXPECT_EQ(columns["time per epoch"].cells, (std::vector<std::string>{"50.0 s", "20.0 s"}));
  EXPECT_EQ(columns["time per epoch"].ratio, "0.40x");
}

TEST_F(RunFolder, AProcessThatFoundNothingLeftToDoDidNotWorkOnIt) {
  const std::string stretch =
      R"({"kind": "stretch", "epoch": 1, "step": 20, "steps": 20, "tokens": 100, "seconds": 2})";
  const std::string end = R"({"kind": "end", "step": 20, "ended": "finished"})";
  put("ledger.jsonl", start_line(0) + stretch + "\n" + end + "\n" + start_line(20) + end + "\n");
  const RunRecord run = read();
  EXPECT_EQ(run.status, "finished");
  EXPECT_EQ(run.processes.size(), 1u);
  EXPECT_EQ(run.totals.processes, 1);
  EXPECT_EQ(report_page(run).find("resumed"), std::string::npos);
}

TEST_F(RunFolder, KnowsHowBusyItsGpuWas) {
  put("summary.json", R"({"ended": "finished", "device": "cuda:0", "last_process":
                          {"gpu": {"mean_busy_share": 0.5, "max_memory_used_bytes": 1024}}})");
  RunRecord run = read();
  EXPECT_EQ(run.device, "cuda:0");
  EXPECT_EQ(run.gpu_busy_share, 0.5);
  EXPECT_EQ(run.gpu_memory_used_bytes, 1024);
  put("summary.json", R"({"device": "cpu", "gpu": [], "last_process": 3})");
  run = read();
  EXPECT_TRUE(std::isnan(run.gpu_busy_share));
}

TEST_F(RunFolder, KnowsHowBusyTheGpuOfEveryRankWas) {
  put("summary.json", R"({"device": "cuda:0", "ranks": [
    {"rank": 0, "gpu": {"mean_busy_share": 0.5, "max_memory_used_bytes": 1024, "max_celsius": 61}}, {"rank": 1}, 7,
    {"rank": 2, "gpu": {"mean_busy_share": 0.9}}]})");
  const RunRecord run = read();
  ASSERT_EQ(run.rank_gpus.size(), 2);
  EXPECT_EQ(run.rank_gpus[0].busy_share, 0.5);
  EXPECT_EQ(run.rank_gpus[0].memory_used_bytes, 1024);
  EXPECT_EQ(run.rank_gpus[0].celsius, 61);
  EXPECT_EQ(run.rank_gpus[1].rank, 2);
  EXPECT_EQ(run.rank_gpus[1].busy_share, 0.9);
  EXPECT_TRUE(std::isnan(run.rank_gpus[1].celsius));
}

TEST_F(RunFolder, KnowsWhatItsRanksLostToEachOther) {
  put("summary.json",
      R"({"ended": "finished", "world_size": 2, "ledger": {"start_up": 5, "communication": 1, "loss": 9},
                          "ranks": [{"rank": 0, "communication_seconds": 1}, {"rank": 1, "host": "node2", "communication_seconds": 3,
                                    "work_seconds": 7}]})");
  RunRecord run = read();
  ASSERT_EQ(run.ranks.size(), 2U);
  EXPECT_EQ(run.ranks[1].communication_seconds, 3);
  EXPECT_EQ(run.ranks[1].host, "node2");
  EXPECT_EQ(run.ranks[1].work_seconds, 7);
  EXPECT_TRUE(std::isnan(run.ranks[0].work_seconds));
  EXPECT_EQ(run.ranks_training_seconds, 10);
  put("summary.json", R"({"ended": "finished", "world_size": 1, "ranks": [3, {"communication_seconds": "long"}]})");
  run = read();
  ASSERT_EQ(run.ranks.size(), 1U);
  EXPECT_TRUE(std::isnan(run.ranks[0].communication_seconds));
}

// The two runs that `first` and `second` make of a start line, with evaluations at a loss of 4 and of 3.
class ComparedRuns : public RunFolder {
 protected:
  Comparison compare(const json& first, const json& second, const std::string& lines = evaluation_line(10, 4, 1),
                     const std::string& other_lines = evaluation_line(10, 3, 2)) {
    put("ledger.jsonl", start_line(0, 0, first));
    put("metrics.jsonl", lines);
    RunRecord one = read();
    put("ledger.jsonl", start_line(0, 0, second));
    put("metrics.jsonl", other_lines);
    RunRecord two = read();
    two.name = "other";
    return compare_runs({one, two});
  }
  static std::string star_of(const Comparison& comparison, const std::string& title) {
    for (const ComparedColumn& column : compared_columns(comparison)) {
      if (column.title == title) return column.best < 0 ? "none" : std::to_string(column.best);
    }
    return "no such column";
  }
  static bool has_time_to(const Comparison& comparison) {
    return comparison_text(comparison).find("time to ") != std::string::npos;
  }
  static std::string with_bits(std::string line, double bits) {
    json parsed = json::parse(line);
    parsed["validation_bits_per_byte"] = bits;
    return parsed.dump() + "\n";
  }
};

TEST_F(ComparedRuns, OfTheSameTextAndTokenizerHaveABest) {
  const Comparison comparison = compare({}, {});
  EXPECT_TRUE(comparison.warnings.empty());
  EXPECT_EQ(star_of(comparison, "best loss"), "1");
  EXPECT_TRUE(has_time_to(comparison));
}

TEST_F(ComparedRuns, OfOtherValidationDataHaveNone) {
  const Comparison comparison = compare({}, {{"validation_fingerprint", "other"}});
  for (const char* title : {"best loss", "perplexity", "accuracy", "last loss"}) {
    EXPECT_EQ(star_of(comparison, title), "none") << title;
  }
  EXPECT_FALSE(has_time_to(comparison));
  EXPECT_NE(comparison_text(comparison).find("warning: the validation data differ"), std::string::npos);
  EXPECT_NE(comparison_page(comparison).find("the validation data differ"), std::string::npos);
  const json figures = json::parse(comparison_json(comparison));
  EXPECT_EQ(figures["comparable"], false);
  EXPECT_TRUE(figures["common_loss"].is_null());
}

TEST_F(ComparedRuns, OfOtherTokenizersAreComparedByBitsPerByte) {
  const Comparison comparison =
      compare({}, {{"tokenizer_fingerprint", "other"}}, with_bits(evaluation_line(10, 4, 1), 1.8),
              with_bits(evaluation_line(10, 3, 2), 2.7));
  EXPECT_EQ(comparison.common.name, "bits_per_byte");
  EXPECT_EQ(star_of(comparison, "best bits per byte"), "0") << "although its loss per token is higher";
  for (const char* title : {"loss", "perplexity", "accuracy", "tokens/s"}) {
    EXPECT_EQ(star_of(comparison, title), "none") << title;
  }
  EXPECT_NE(comparison_text(comparison).find("time to bits per byte 2.7000"), std::string::npos);
  EXPECT_NE(comparison_text(comparison).find("warning: the tokenizers differ"), std::string::npos);
}

TEST_F(ComparedRuns, OfAnEarlierBriskAreNotKnownToBeComparable) {
  const json nothing = {{"validation_fingerprint", nullptr}, {"tokenizer_fingerprint", nullptr}};
  const Comparison comparison = compare(nothing, {});
  EXPECT_EQ(star_of(comparison, "best loss"), "none");
  EXPECT_FALSE(has_time_to(comparison));
  EXPECT_NE(comparison_text(comparison).find("whether the tokenizers are the same is not known"), std::string::npos);
}

TEST_F(ComparedRuns, WithinEachOthersIntervalHaveNoBest) {
  put("job.json", kClassifierJob);
  const Comparison comparison =
      compare({}, {}, class_evaluation_line(10, 0.5, 0.805, 1), class_evaluation_line(10, 0.4, 0.79, 2));
  for (const char* title : {"best accuracy", "macro F1", "loss", "last accuracy"}) {
    EXPECT_EQ(star_of(comparison, title), "none") << title;
  }
  EXPECT_FALSE(has_time_to(comparison));
  EXPECT_NE(comparison_text(comparison).find("within each other's 95 % intervals"), std::string::npos);
}

TEST_F(ComparedRuns, OfOtherClassesHaveNoBestButOtherTokenizersMay) {
  put("job.json", kClassifierJob);
  const std::string good = class_evaluation_line(10, 0.5, 0.9, 1), bad = class_evaluation_line(10, 0.4, 0.5, 2);
  const Comparison classes = compare({}, {{"classes_fingerprint", "other"}}, good, bad);
  EXPECT_EQ(star_of(classes, "best accuracy"), "none");
  EXPECT_NE(comparison_text(classes).find("warning: the classes differ"), std::string::npos);
  const Comparison tokenizers = compare({}, {{"tokenizer_fingerprint", "other"}}, good, bad);
  EXPECT_EQ(star_of(tokenizers, "best accuracy"), "0");
  EXPECT_EQ(star_of(tokenizers, "tokens/s"), "none") << "a token of one is not a token of the other";
}

}  // namespace
}  // namespace brisk
