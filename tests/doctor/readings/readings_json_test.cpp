#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "doctor/judge/healthy_readings.h"
#include "doctor/readings/readings.h"
#include "support/scratch_folder.h"

namespace brisk {
namespace {

using test::has;

std::string refusal(const std::string& text) {
  return test::message_of<UserError>([&] { readings_from_json(text, "recorded.json"); });
}

TEST(ReadingsJson, IsReadBackAsItWas) {
  Readings readings = test::healthy_readings_on_gpu();
  readings.job.name = "a job";
  readings.data.mean = 1.0 / 3;
  readings.stretch.minor_faults = INT64_MAX;
  readings.stretch.ledger.sampled = true;
  readings.stretch.shortened = true;
  readings.vital_signs.unchanged = {"a \"tensor\"\n"};
  const std::string text = readings_to_json(readings);
  const Readings again = readings_from_json(text, "recorded.json");
  EXPECT_EQ(readings_to_json(again), text);
  EXPECT_EQ(job_to_json_text(again.job), job_to_json_text(readings.job));
  EXPECT_EQ(again.data.mean, readings.data.mean);
  EXPECT_EQ(again.data.lengths.at(0).last, 128);
  EXPECT_EQ(again.stretch.minor_faults, INT64_MAX);
  EXPECT_EQ(again.stretch.ledger.nanoseconds, readings.stretch.ledger.nanoseconds);
  EXPECT_TRUE(again.stretch.ledger.sampled && again.stretch.shortened);
  EXPECT_EQ(again.machine.product_gflops, readings.machine.product_gflops);
  EXPECT_EQ(again.stretch.gpu.throttled, readings.stretch.gpu.throttled);
  EXPECT_EQ(again.vital_signs.unchanged, readings.vital_signs.unchanged);
  EXPECT_EQ(again.history.validation, readings.history.validation);
  EXPECT_EQ(again.batch_curve.at(3).memory_bytes, 900'000'000);
}

TEST(ReadingsJson, HoldsWhatIsNoFiniteNumber) {
  Readings readings;
  readings.vital_signs.first_loss = NAN;
  readings.vital_signs.last_loss = INFINITY;
  readings.rate_curve = {{1, 0, -INFINITY}};
  const Readings again = readings_from_json(readings_to_json(readings), "recorded.json");
  EXPECT_TRUE(std::isnan(again.vital_signs.first_loss));
  EXPECT_EQ(again.vital_signs.last_loss, INFINITY);
  EXPECT_EQ(again.rate_curve.at(0).loss, -INFINITY);
}

TEST(ReadingsJson, HoldsTextThatIsCutInsideACharacter) {
  Readings readings;
  readings.vital_signs.examples = {"na\xc3"};
  EXPECT_EQ(readings_from_json(readings_to_json(readings), "x").vital_signs.examples.at(0), "na\xef\xbf\xbd");
}

TEST(ReadingsJson, LeavesWhatIsMissingUnknown) {
  const Readings readings = readings_from_json(R"({"machine": {"cores": 8}})", "recorded.json");
  EXPECT_EQ(readings.machine.cores, 8);
  EXPECT_LT(readings.machine.quota_cores, 0);
}

TEST(ReadingsJson, NamesThePlaceOfDamage) {
  EXPECT_TRUE(has(refusal(R"({"machine": {"cores": 1)"), "recorded.json"));
  EXPECT_TRUE(has(refusal("[]"), "recorded.json: found"));
  EXPECT_TRUE(has(refusal(R"({"machine": {"cores": "two"}})"),
                  "recorded.json: machine.cores: found \"two\", expected an integer"))
      << refusal(R"({"machine": {"cores": "two"}})");
  EXPECT_TRUE(has(refusal(R"({"machine": {"cores": 2.5}})"), "machine.cores"));
  EXPECT_TRUE(has(refusal(R"({"machine": {"cores": 18446744073709551615}})"), "machine.cores"));
  EXPECT_TRUE(has(refusal(R"({"machine": {"coers": 2}})"), "recorded.json: machine: unknown key 'coers'"));
  EXPECT_TRUE(has(refusal(R"({"machines": {}})"), "recorded.json: unknown key 'machines'"));
  EXPECT_TRUE(has(refusal(R"({"data": {"lengths": [{"first": 1}, {"first": true}]}})"), "data.lengths[1].first"));
  EXPECT_TRUE(has(refusal(R"({"history": {"training": [[1, 2, 3]]}})"), "history.training[0]"));
  EXPECT_TRUE(has(refusal(R"({"stretch": {"ledger": {"nanoseconds": {"sleeping": 1}}}})"), "'sleeping'"));
  EXPECT_TRUE(has(refusal(R"({"job": {"training": {"batch_size": -1}}})"), "training.batch_size"));
  EXPECT_TRUE(has(refusal(R"({"vital_signs": {"first_loss": "low"}})"), "vital_signs.first_loss"));
}

}  // namespace
}  // namespace brisk
