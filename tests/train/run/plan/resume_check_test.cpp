// What a resumed run takes over from its checkpoint, and which changes of its job it allows.
#include "train/run/plan/resume_check.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "infer/tuned_settings.h"
#include "support/scratch_folder.h"

namespace brisk {
namespace {

std::string problem(const std::function<void()>& action) { return test::message_of<UserError>(action); }

TEST(TunedSettings, OfADamagedCheckpointAreRefused) {
  const TunedSettings tuned{.compute_type = DType::bf16, .micro_batch_tokens = 2048, .isa = "amx", .threads = 2};
  EXPECT_EQ(tuned_settings_from_json(tuned_settings_to_json(tuned), "here").micro_batch_tokens, 2048);
  for (const int64_t tokens : {int64_t{0}, int64_t{-5}, int64_t{9223372036854775807}}) {
    TunedSettings damaged = tuned;
    damaged.micro_batch_tokens = tokens;
    const std::string message = problem([&] { tuned_settings_from_json(tuned_settings_to_json(damaged), "step-1"); });
    EXPECT_NE(message.find("step-1: its micro_batch_tokens are"), std::string::npos) << message;
  }
}

class SameJob : public ::testing::Test {
 protected:
  static Job job_with(const std::string& data) {
    Job job = job_from_json_text(R"({"output": "run", "data": )" + data + "}", "job.json");
    resolve_defaults(job);
    return job;
  }
  static std::string change(const std::string& before, const std::string& after) {
    return problem([&] { check_same_job(job_to_json_text(job_with(before)), "run/job.json", job_with(after)); });
  }
};

TEST_F(SameJob, MayFindItsTextElsewhere) {
  EXPECT_EQ(change(R"({"train": "a.txt"})", R"({"train": "/data/a.txt"})"), "");
  EXPECT_EQ(change(R"({"train": ["a.txt", "b.txt"]})", R"({"train": "*.txt"})"), "");
  EXPECT_EQ(change(R"({"train": "a", "validation": "b"})", R"({"train": "a", "validation": "c"})"), "");
  EXPECT_EQ(change(R"({"train": {"path": "a", "weight": 2}})", R"({"train": {"path": "b", "weight": 2}})"), "");
}

TEST_F(SameJob, MayLogAndSaveOtherwiseButNotTrainOtherwise) {
  const Job job = job_with(R"({"train": "a"})");
  const std::string saved = job_to_json_text(job);
  Job other = job;
  other.training.save_steps = 7;
  other.training.threads = 3;
  other.training.sample_prompts = {"Once"};
  other.device = "cuda";
  EXPECT_EQ(problem([&] { check_same_job(saved, "run/job.json", other); }), "");
  other.training.seed = 2;
  const std::string message = problem([&] { check_same_job(saved, "run/job.json", other); });
  EXPECT_NE(message.find("training.seed = 1, the job now says 2"), std::string::npos) << message;
}

TEST_F(SameJob, MayBeOfABriskWhoseOptionsHadOtherNames) {
  const auto job = [](const std::string& key) {
    return R"({"task": "mlm", "data": {"train": "a.txt"}, "training": {")" + key + R"(": false}})";
  };
  Job now = job_from_json_text(job("prune_last_layer"), "job.json");
  resolve_defaults(now);
  EXPECT_EQ(problem([&] { check_same_job(job("first_row_only"), "run/job.json", now); }), "");
}

TEST_F(SameJob, ReadsItTheSameWay) {
  EXPECT_NE(change(R"({"train": {"path": "a", "weight": 2}})", R"({"train": {"path": "a", "weight": 3}})")
                .find("data.train.0.weight = 2"),
            std::string::npos);
  EXPECT_NE(change(R"({"train": "a"})", R"({"train": "a", "document": "line"})").find("data.document"),
            std::string::npos);
}

}  // namespace
}  // namespace brisk
