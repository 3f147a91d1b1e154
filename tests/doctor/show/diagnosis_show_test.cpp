// A diagnosis as text, Markdown, JSON and page: whole, within 100 columns, and with nothing in it that is obeyed.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/terminal/terminal.h"
#include "doctor/show/diagnosis_facts.h"
#include "doctor/show/diagnosis_json.h"
#include "doctor/show/diagnosis_page.h"
#include "doctor/show/diagnosis_text.h"
#include "doctor/show/made_up_diagnosis.h"
#include "support/json_schema.h"

namespace brisk {
namespace {

using nlohmann::json;
using test::hostile_diagnosis;
using test::interrupted_diagnosis;
using test::rich_diagnosis;
using test::schema_problems;
using test::uneventful_diagnosis;

bool form_has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

int64_t count_of_lines(const std::string& text) { return std::count(text.begin(), text.end(), '\n'); }

void expect_columns(const std::string& text, int64_t most) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(display_width(line), most) << line;
}

// Where a number that is none is shown, with what stands around it; empty: nowhere.
std::string number_that_is_none(const std::string& text) {
  for (const char* word : {" nan ", ">nan", "nan%", "nanx", " inf ", ">inf", "infx", "-1 B"}) {
    const size_t at = text.find(word);
    if (at != std::string::npos) return text.substr(at < 80 ? 0 : at - 80, 160);
  }
  return {};
}

// What is unknown, or came out of an accident of measuring.
Diagnosis without_numbers() {
  Diagnosis diagnosis = rich_diagnosis();
  const double nothing = std::numeric_limits<double>::quiet_NaN();
  for (Rung& rung : diagnosis.ladder) {
    rung.gain = rung.gain_low = rung.gain_high = rung.cumulative = rung.loss = rung.epoch_seconds = nothing;
    rung.utilisation = rung.loss_spread = rung.predicted_gain = nothing;
  }
  diagnosis.before.vital_signs.first_loss = diagnosis.before.vital_signs.last_loss = nothing;
  diagnosis.before.vital_signs.forwards_per_step = nothing;
  diagnosis.before.machine.memory_gb_per_second = nothing;
  diagnosis.findings[0].predicted_gain = nothing;
  diagnosis.not_measured[0].predicted_gain = std::numeric_limits<double>::infinity();
  return diagnosis;
}

TEST(DiagnosisJson, HasEveryKeyAndPassesItsSchema) {
  const json schema = json::parse(diagnosis_schema());
  EXPECT_EQ(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
  for (const Diagnosis& diagnosis : {rich_diagnosis(), uneventful_diagnosis(), interrupted_diagnosis(), Diagnosis(),
                                     without_numbers(), hostile_diagnosis("<script>alert(1)</script>\x1b[2J\xff")}) {
    const json value = json::parse(diagnosis_json(diagnosis));
    EXPECT_EQ(schema_problems(value, schema), std::vector<std::string>());
    for (const auto& [key, inner] : value.items()) EXPECT_TRUE(schema["properties"].contains(key)) << key;
  }
}

TEST(DiagnosisJson, OfAnotherShapeFailsTheSchema) {
  const json schema = json::parse(diagnosis_schema());
  json value = json::parse(diagnosis_json(rich_diagnosis()));
  value["ladder"][1].erase("gain_low");
  value["ladder"][2]["kept"] = "yes";
  value["findings"][0]["same_maths"] = "nearly";
  value["ledger"]["before"]["seconds"] = -1;
  EXPECT_EQ(schema_problems(value, schema).size(), 4u);
}

TEST(DiagnosisJson, NamesTheKeysThatScriptsRelyOn) {
  const json value = json::parse(diagnosis_json(rich_diagnosis()));
  for (const char* key : {"id", "evidence", "cause", "fix", "predicted_gain", "same_maths"}) {
    EXPECT_TRUE(value["findings"][0].contains(key)) << key;
  }
  const json& rung = value["ladder"][1];
  for (const char* key :
       {"step", "tokens_per_second", "rows_per_second", "gain", "gain_low", "gain_high", "cumulative", "utilisation",
        "epoch_seconds", "predicted_gain", "peak_memory_bytes", "loss", "loss_spread", "kept"}) {
    EXPECT_FALSE(rung[key].is_null()) << key;
  }
  EXPECT_EQ(rung["key"], "training.max_length");
  EXPECT_EQ(rung["value"], 66) << "a number of the job, not a text";
  EXPECT_EQ(value["findings"][0]["same_maths"], "same maths");
  EXPECT_EQ(value["findings"][1]["same_maths"], "changes maths");
  EXPECT_EQ(value["not_measured"][0]["step"], "gradient_checkpointing: false");
  EXPECT_EQ(value["job"]["training"]["batch_size"], 32);
  EXPECT_TRUE(value["vital_signs"]["measured"]);
}

TEST(DiagnosisJson, WhatIsNotKnownIsNull) {
  const json value = json::parse(diagnosis_json(rich_diagnosis()));
  const json& failed = value["ladder"][5];
  for (const char* key :
       {"tokens_per_second", "gain", "cumulative", "loss", "loss_spread", "peak_memory_bytes", "proof"}) {
    EXPECT_TRUE(failed[key].is_null()) << key;
  }
  EXPECT_TRUE(value["measured"]["before"]["disk_wait_seconds"].is_null());
  const json early = json::parse(diagnosis_json(interrupted_diagnosis()));
  EXPECT_TRUE(early["ledger"]["before"].is_null());
  EXPECT_TRUE(early["roofline"]["before"].is_null());
  EXPECT_EQ(early["job"]["training"]["batch_size"], 16) << "without a text of the tuned job, all of its keys";
}

TEST(DiagnosisJson, TheLedgerSumsToHundred) {
  const json value = json::parse(diagnosis_json(rich_diagnosis()));
  for (const char* which : {"before", "after"}) {
    double share = 0, seconds = 0;
    for (const json& phase : value["ledger"][which]["phases"]) {
      share += phase["share"].get<double>();
      seconds += phase["seconds"].get<double>();
    }
    EXPECT_NEAR(share, 100, 1e-6) << which;
    EXPECT_NEAR(seconds, value["ledger"][which]["seconds"].get<double>(), 1e-6) << which;
  }
}

TEST(DiagnosisRoofline, AccountsForAllOfTheTime) {
  const Readings readings = test::made_up_readings();
  const Roofline roofline = roofline_of(readings);
  double seconds = 0, attainable = 0;
  for (const Roofline::Part& part : roofline.parts) {
    seconds += part.seconds;
    attainable += part.attainable_seconds;
  }
  EXPECT_NEAR(seconds, readings.stretch.ledger.seconds(), 1e-6);
  EXPECT_NEAR(attainable, readings.stretch.tokens / readings.attainable_tokens_per_second(), 1e-6);
  EXPECT_EQ(roofline.parts.front().name, "linear layers") << "that which loses most";
  EXPECT_FALSE(roofline_of(Readings()).known());
}

TEST(DiagnosisChanges, AreTheKeysThatDifferWithTheirReasons) {
  const std::vector<JobChange> changes = changes_of(rich_diagnosis());
  ASSERT_EQ(changes.size(), 3u);
  EXPECT_EQ(changes[0].key, "training.max_length");
  EXPECT_EQ(changes[0].before, "128");
  EXPECT_EQ(changes[0].after, "66");
  EXPECT_EQ(changes[0].why, "padding: 3.97x [3.89, 4.09]");
  EXPECT_EQ(changes[2].key, "training.learning_rate");
  EXPECT_EQ(changes[2].why, "the learning rate grows with the square root of the batch");
}

TEST(DiagnosisChecks, MarkWhatHoldsAndWhatDoesNot) {
  const auto mark_of = [](const Diagnosis& diagnosis, const std::string& what) {
    for (const Check& check : diagnosis_checks(diagnosis)) {
      if (check.what == what) return mark_text(check.mark) + " " + check.numbers;
    }
    return std::string();
  };
  Diagnosis diagnosis = rich_diagnosis();
  EXPECT_EQ(mark_of(diagnosis, "all trained tensors change"), "✓ 104 of 104 tensors");
  EXPECT_EQ(mark_of(diagnosis, "the first loss is that of a guess"), "✓ 0.6988, ln 2 is 0.6931");
  EXPECT_EQ(mark_of(diagnosis, "nothing out of memory"), "✓ peak 3.00 GiB of 16.0 GiB");
  EXPECT_EQ(mark_of(diagnosis, "the same maths is proven"),
            "– for 2 of 3 changes kept; changed on purpose by batch_size: 32");
  EXPECT_EQ(mark_of(diagnosis, "the GPU has work"), "") << "there is none";
  diagnosis.ladder[1].proof.holds = false;
  EXPECT_EQ(mark_of(diagnosis, "the same maths is proven").substr(0, 3), "✗");
  VitalSigns& signs = diagnosis.after.vital_signs;
  signs.tensors_with_gradient = 102;
  signs.without_gradient = {"pooler.weight", "pooler.bias"};
  signs.first_loss = 7;
  signs.loss_falling = false;
  EXPECT_EQ(mark_of(diagnosis, "gradients reach every trained tensor"),
            "✗ 102 of 104 tensors; not pooler.weight, pooler.bias");
  EXPECT_EQ(mark_of(diagnosis, "the first loss is that of a guess"), "✗ 7.0000, ln 2 is 0.6931");
  EXPECT_EQ(mark_of(diagnosis, "the loss falls").substr(0, 3), "✗");
  diagnosis.after.stretch.swapped_bytes = 5 << 20;
  EXPECT_EQ(mark_of(diagnosis, "nothing in swap"), "✗ 5.00 MiB");
  diagnosis.after.stretch.gpu = {
      .name = "H200", .busy_share = 0.41, .memory_used_bytes = 1 << 30, .memory_bytes = int64_t{141} << 30};
  EXPECT_EQ(mark_of(diagnosis, "the GPU has work"),
            "✗ H200: busy 41.0 % of the time, 1.00 GiB of 141 GiB of memory used");
}

TEST(DiagnosisText, TellsEverythingInOrder) {
  const std::string text = diagnosis_text(rich_diagnosis());
  size_t at = 0;
  for (const char* part : {"sst2-minilm: ",
                           "10.96x faster with 3 changes",
                           "AMD EPYC 9B14",
                           "note: Other processes",
                           "VITAL SIGNS",
                           "✓ all trained tensors change",
                           "example 1: [CLS] hide new secretions",
                           "WHERE THE TIME GOES",
                           "forward: linear layers",
                           "80.2 % of them padding",
                           "attainable here",
                           "FINDINGS",
                           "1. padding: 80.2 % of the computed rows",
                           "fix: \"training.max_length\": 66",
                           "predicted 4.41x; same maths within rounding",
                           "2. batch_size",
                           "\"training.batch_size\": 32, \"training.learning_rate\": 4e-05",
                           "changes the maths: fewer, larger",
                           "THE LADDER",
                           "3.97x [3.89, 4.09]",
                           "max_length: 66: same maths: loss 0.693147",
                           "batch_size: 32: changes the maths",
                           "num_workers: 4: not kept: within the noise",
                           "batch_size: 512: not kept: ended with: out of memory",
                           "NOT MEASURED",
                           "gradient_checkpointing: false: predicted 1.31x; the budget was over",
                           "BOTH JOBS TO THE END",
                           "WHAT THE TUNED JOB CHANGES",
                           "training.max_length: 128 -> 66",
                           "--apply FAST.json",
                           "repeat it: "}) {
    const size_t found = text.find(part, at);
    ASSERT_NE(found, std::string::npos) << part << "\n" << text;
    at = found;
  }
  EXPECT_FALSE(form_has(text, "logging")) << "0.02 % of the time is not worth a line";
}

TEST(DiagnosisText, FitsAHundredColumns) {
  Diagnosis long_names = rich_diagnosis();
  long_names.ladder[1].step = std::string(300, 'x');
  long_names.ladder[2].gain = 1234.5;
  long_names.findings[0].cause = std::string(500, 'y');
  long_names.before.vital_signs.unchanged = {std::string(250, 'z')};
  long_names.command = "brisk doctor " + std::string(200, '/');
  for (const Diagnosis& diagnosis : {rich_diagnosis(), long_names, uneventful_diagnosis(), interrupted_diagnosis(),
                                     hostile_diagnosis("界<b>\x1b[2J ")}) {
    expect_columns(diagnosis_text(diagnosis), 100);
  }
}

TEST(DiagnosisText, OfAJobWithNothingToChangeIsShort) {
  const std::string text = diagnosis_text(uneventful_diagnosis());
  EXPECT_TRUE(form_has(text, "nothing worth changing"));
  EXPECT_TRUE(form_has(text, "attainable"));
  EXPECT_LE(count_of_lines(text), 20) << text;
  for (const char* part : {"FINDINGS", "THE LADDER", "NOT MEASURED", "--apply"})
    EXPECT_FALSE(form_has(text, part)) << part;
}

TEST(DiagnosisText, OfAnInterruptedOneSaysWhatIsMissing) {
  Diagnosis diagnosis = interrupted_diagnosis();
  for (const std::string& text :
       {diagnosis_text(diagnosis), diagnosis_markdown(diagnosis), diagnosis_page(diagnosis)}) {
    for (const char* part : {"nterrupted", "the vital signs", "where the time goes", "none of which was tried"}) {
      EXPECT_TRUE(form_has(text, part)) << part << "\n" << text;
    }
  }
  diagnosis = rich_diagnosis();
  diagnosis.interrupted = true;
  EXPECT_TRUE(form_has(diagnosis_text(diagnosis), "interrupted; missing: 2 fixes that were not tried"));
}

TEST(DiagnosisPage, HasItsPartsAndNeedsNoNetwork) {
  const std::string page = diagnosis_page(rich_diagnosis());
  for (const char* part :
       {"The ladder", "Findings", "Where the time goes", "What this machine could do", "Batch size", "Lengths",
        "Vital signs", "[CLS] hide new secretions", "Not measured", "Both jobs to the end",
        "What the tuned job changes", "Checklist", "How to repeat it", "10.96x", "--apply FAST.json"}) {
    EXPECT_TRUE(form_has(page, part)) << part;
  }
  for (const char* part : {"http://", "https://", "src=", "@import", "url("})
    EXPECT_FALSE(form_has(page, part)) << part;
}

TEST(DiagnosisForms, WithoutNumbersShowNone) {
  for (const Diagnosis& diagnosis : {without_numbers(), uneventful_diagnosis(), interrupted_diagnosis(), Diagnosis()}) {
    for (const std::string& form :
         {diagnosis_text(diagnosis), diagnosis_markdown(diagnosis), diagnosis_page(diagnosis)}) {
      EXPECT_EQ(number_that_is_none(form), "");
    }
  }
}

TEST(DiagnosisForms, NothingOfTheUsersIsObeyed) {
  const std::string attack = "<script>alert('x')</script>\" onload=\"y|`z`\n# w\x1b[2J\x07";
  const Diagnosis diagnosis = hostile_diagnosis(attack);
  const std::string page = diagnosis_page(diagnosis), text = diagnosis_text(diagnosis),
                    markdown = diagnosis_markdown(diagnosis);
  EXPECT_FALSE(form_has(page, "<script>alert"));
  EXPECT_FALSE(form_has(page, "\" onload"));
  EXPECT_TRUE(form_has(page, "&lt;script&gt;alert(&#39;x&#39;)"));
  EXPECT_FALSE(form_has(markdown, "\n# w"));
  for (const std::string& form : {page, text, markdown}) {
    EXPECT_FALSE(form_has(form, "\x1b"));
    EXPECT_FALSE(form_has(form, "\x07"));
  }
  for (size_t at = 0; (at = markdown.find("<script>", at)) != std::string::npos; ++at) {
    const size_t line = markdown.rfind('\n', at) + 1;
    const auto ticks = std::count(markdown.begin() + static_cast<std::ptrdiff_t>(line),
                                  markdown.begin() + static_cast<std::ptrdiff_t>(at), '`');
    EXPECT_GT(ticks, 0) << "outside of code: " << markdown.substr(line, 200);
  }
}

}  // namespace
}  // namespace brisk
