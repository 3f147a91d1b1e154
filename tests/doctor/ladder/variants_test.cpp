#include "doctor/ladder/variants.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "doctor/ladder/course.h"

namespace brisk {
namespace {

Job resolved(const std::string& text) {
  Job job = job_from_json_text(text, "job.json");
  resolve_defaults(job);
  return job;
}

const char* const kText = R"({"training": {"batch_size": 8, "max_length": 64, "stop": "2h", "eval_steps": 10,
                              "save_steps": 5, "early_stopping_patience": 3}, "data": {"train": ["a.txt"]}})";

TEST(WithSetting, ChangesOneKeyAlone) {
  const Job job = resolved(kText), changed = with_setting(job, "training.precision", "\"bf16\"");
  EXPECT_EQ(changed.training.precision, "bf16");
  Job back = changed;
  back.training.precision = job.training.precision;
  EXPECT_EQ(job_to_json_text(back), job_to_json_text(job));
  EXPECT_EQ(setting_of(changed, "training.precision"), "\"bf16\"");
  EXPECT_EQ(setting_of(job, "training.batch_size"), "8");
  EXPECT_EQ(setting_of(job, "training.no_such_key"), "");
  EXPECT_THROW(with_setting(job, "training.precision", "\"fp7\""), UserError);
}

TEST(WithFix, TakesTheKeysThatFollowToo) {
  const Job changed = with_fix(
      resolved(kText), {.key = "training.batch_size", .value = "32", .also = {{"training.learning_rate", "0.01"}}});
  EXPECT_EQ(changed.training.batch_size, 32);
  EXPECT_DOUBLE_EQ(changed.training.learning_rate, 0.01);
}

TEST(NaiveJob, IsASequenceAtATimePaddedInFp32) {
  const Job naive = naive_job(resolved(kText));
  EXPECT_EQ(naive.training.padding, "max_length");
  EXPECT_EQ(naive.training.micro_batch_tokens, 64);
  EXPECT_EQ(naive.training.precision, "fp32");
  EXPECT_EQ(naive.training.batch_size, 8);  // the optimizer's steps are the same
}

TEST(NaiveJob, IsAnImageAtATimeWithAllItsPatches) {
  const Job naive =
      naive_job(resolved(R"({"task": "image_to_text", "training": {"max_length": 16}, "data": {"train": ["a.tsv"]},
      "model": {"image_size": [32, 64], "patch_size": 4, "encoder_d_model": 64}})"));
  EXPECT_EQ(naive.training.micro_batch_tokens, 8 * 16 + 1);  // and the class row
}

TEST(ForMeasuring, HasNoEndAndNothingBetweenTheSteps) {
  const Job job = resolved(kText);
  const Job measured = for_measuring(job, {.warmup_steps = 7, .sequences_per_step = 2});
  EXPECT_TRUE(measured.training.stop.empty());
  EXPECT_GT(measured.training.max_steps, 1'000'000);
  EXPECT_GT(measured.training.eval_steps, measured.training.max_steps);
  EXPECT_GT(measured.training.save_steps, measured.training.max_steps);
  EXPECT_FALSE(measured.training.divergence_guard);
  EXPECT_EQ(measured.training.warmup_steps, 7);
  EXPECT_EQ(measured.training.batch_size, 2);
  EXPECT_EQ(for_measuring(job, {}).training.batch_size, 8);
  EXPECT_NO_THROW(resolved(job_to_json_text(measured)));
}

TEST(CourseOf, CountsWhatTheJobDoesInAnEpoch) {
  ReadyFacts facts;
  facts.sequences_per_step = 8;
  facts.steps_per_epoch = 100;
  facts.total_steps = 200;
  facts.tokens_per_epoch = 1e5;
  facts.validation_sequences = 40;
  facts.validation_rows = 4000;
  const CourseReadings course = course_of(resolved(kText), facts, 0.5);
  EXPECT_DOUBLE_EQ(course.evaluations_per_epoch, 10);
  EXPECT_DOUBLE_EQ(course.saves_per_epoch, 20);
  EXPECT_DOUBLE_EQ(course.epochs, 2);
  facts.validation_sequences = 0;
  EXPECT_EQ(course_of(resolved(kText), facts, 0.5).evaluations_per_epoch, 0);
}

}  // namespace
}  // namespace brisk
