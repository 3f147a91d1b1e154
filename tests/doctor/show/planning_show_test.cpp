// A plan as text and JSON: whole, in lines that fit, checked by its schema.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "base/terminal/terminal.h"
#include "doctor/plan/made_up_sizes.h"
#include "doctor/show/planning_facts.h"
#include "doctor/show/planning_json.h"
#include "doctor/show/planning_text.h"
#include "support/json_schema.h"

namespace brisk {
namespace {

using nlohmann::json;

JobPlan made_up_plan(const std::string& name = "a job") {
  JobPlan plan{.name = name, .path = name + ".json", .size = test::made_up_size(), .precision = "fp32"};
  plan.memory_available = int64_t{4} << 30;
  plan.times = test::made_up_times();
  plan.outlook = {.parameters = 4'000'000,
                  .flop_per_token = 25e6,
                  .memory_bytes = plan.size.memory.total(),
                  .fits = true,
                  .step_seconds = 1.5,
                  .tokens_per_second = 666,
                  .epoch_seconds = 15.4,
                  .run_seconds = 32,
                  .disk_bytes = plan.size.disk.total(),
                  .basis = "steps of the job, timed here"};
  Outlook twice = plan.outlook;
  twice.id = "layers";
  twice.change = "twice the layers, 8";
  twice.settings = {"model.num_layers=8"};
  Outlook machines = plan.outlook;
  machines.id = "machines";
  machines.change = "2 machines, 5 sequences each";
  machines.settings = {"training.batch_size=5"};
  machines.network_bytes_per_step = 16e6;
  machines.networks = {{1, 0.256}, {10, 0.026}};
  plan.what_if = {twice, machines};
  plan.shapes = {{.seconds = 600,
                  .layers = 4,
                  .width = 256,
                  .parameters = 4'000'000,
                  .tokens_per_second = 666,
                  .tokens = 4e5,
                  .epochs = 40,
                  .data_is_short = true}};
  plan.models = {{.name = "DistilBERT",
                  .download = "distilbert/distilbert-base-uncased",
                  .layers = 6,
                  .width = 768,
                  .parameters = 66'955'010,
                  .memory_bytes = int64_t{2} << 30,
                  .model_bytes = 267'820'040,
                  .fits = true,
                  .tokens_per_second = 300,
                  .epoch_seconds = 33,
                  .basis = "by FLOP"}};
  plan.notes = {"The teacher's answers are not counted."};
  return plan;
}

Planning planning_of(std::vector<JobPlan> jobs) {
  Planning planning;
  planning.jobs = std::move(jobs);
  planning.here = test::made_up_machine();
  planning.seconds = 12;
  return planning;
}

JobPlan nothing_timed() {
  JobPlan plan = made_up_plan();
  plan.times.reset();
  plan.outlook.fits = false;
  plan.outlook.step_seconds = plan.outlook.tokens_per_second = plan.outlook.epoch_seconds = plan.outlook.run_seconds =
      -1;
  plan.what_if.clear();
  plan.shapes.clear();
  plan.models.clear();
  plan.size.largest_micro_batch_tokens = 0;
  return plan;
}

TEST(PlanningJson, FitsItsSchema) {
  const json schema = json::parse(planning_schema());
  Planning elsewhere = planning_of({made_up_plan()});
  elsewhere.other = test::made_up_machine();
  elsewhere.other->path = "big.json";
  elsewhere.jobs[0].here = elsewhere.jobs[0].outlook;
  for (const Planning& planning : {planning_of({made_up_plan()}), planning_of({made_up_plan(), made_up_plan("other")}),
                                   planning_of({nothing_timed()}), elsewhere}) {
    const json value = json::parse(planning_json(planning));
    EXPECT_EQ(test::schema_problems(value, schema), std::vector<std::string>{});
  }
}

TEST(PlanningJson, HasTheKeysThatScriptsKnow) {
  const json value = json::parse(planning_json(planning_of({made_up_plan()})));
  for (const char* key :
       {"parameters", "flop_per_token", "memory_bytes", "fits", "tokens_per_second", "epoch_seconds", "disk_bytes"}) {
    EXPECT_TRUE(value.contains(key) && !value[key].is_null()) << key;
  }
  EXPECT_TRUE(json::parse(planning_json(planning_of({nothing_timed()})))["tokens_per_second"].is_null());
}

TEST(PlanningText, SaysWhatThereIs) {
  const std::string text = planning_text(planning_of({made_up_plan()}));
  for (const char* part :
       {"4.00M parameters", "it fits", "666 tokens/s", "15.4 s an epoch", "feed-forward", "twice the layers, 8",
        "--set model.num_layers=8", "Gbit/s", "Hoffmann", "DistilBERT", "more data would help", "note: "}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
}

TEST(PlanningText, SaysWhatIsNotKnown) {
  const std::string text = planning_text(planning_of({nothing_timed()}));
  EXPECT_NE(text.find("it does not fit"), std::string::npos) << text;
  EXPECT_NE(text.find("could be timed"), std::string::npos) << text;
  for (const char* word : {"nan", "inf ", "-1 B"}) EXPECT_EQ(text.find(word), std::string::npos) << text;
}

TEST(PlanningText, PutsTwoJobsSideBySide) {
  JobPlan larger = made_up_plan("larger");
  larger.size.parameters *= 2;
  larger.size.components.push_back({"gate", 4'000'000, 1e6});
  const Planning planning = planning_of({made_up_plan("smaller"), larger});
  const std::string text = planning_text(planning);
  EXPECT_NE(text.find("2.00x"), std::string::npos) << text;
  EXPECT_NE(text.find("gate: parameters"), std::string::npos) << text;
  EXPECT_NE(text.find("time of an epoch"), std::string::npos) << text;
  const auto figures = compared_figures(planning.jobs[0], planning.jobs[1]);
  EXPECT_DOUBLE_EQ(figures.front().ratio(), 2);
  for (const ComparedFigure& figure : figures) {
    if (!figure.name.starts_with("gate")) continue;
    EXPECT_LT(figure.ratio(), 0);  // the first job has none
  }
}

}  // namespace
}  // namespace brisk
