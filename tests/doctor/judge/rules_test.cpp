#include "doctor/judge/rules.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <set>

#include "base/files/files.h"
#include "doctor/judge/expect_finding.h"
#include "doctor/judge/healthy_readings.h"
#include "support/scratch_folder.h"

namespace brisk {
namespace {

using test::healthy_readings;
using test::healthy_readings_on_gpu;
using test::kClassifier;
using test::names_of;
using test::spend;

TEST(Rules, FindNothingInAHealthyTraining) {
  EXPECT_EQ(names_of(judge(healthy_readings())), "");
  EXPECT_EQ(names_of(judge(healthy_readings_on_gpu())), "");
  EXPECT_EQ(names_of(judge(healthy_readings(kClassifier))), "");
}

TEST(Rules, FindNothingInWhatIsNotKnown) {
  EXPECT_EQ(names_of(judge(Readings{})), "");
  Readings readings = healthy_readings();
  readings.stretch = {};
  readings.course = {};
  EXPECT_EQ(names_of(judge(readings)), "");
}

TEST(Rules, HaveAllIdsOnceEachWithTexts) {
  std::set<std::string_view> ids;
  for (const Rule& rule : rules()) {
    EXPECT_TRUE(ids.insert(rule.id).second) << rule.id;
    EXPECT_FALSE(rule.symptom.empty() || rule.meaning.empty() || rule.remedy.empty()) << rule.id;
  }
  for (const char* id : {"padding",           "batch_size",      "precision",
                         "duplicate_forward", "head_cost",       "attention_length",
                         "long_outliers",     "accumulation",    "activation_checkpointing",
                         "data_loading",      "evaluation_cost", "logging_cost",
                         "saving_cost",       "optimizer_cost",  "too_few_threads",
                         "oversubscribed",    "quota_throttled", "swapping",
                         "frozen_recomputed", "idle_gpu",        "model_too_large",
                         "plateau",           "overfitting",     "learning_rate",
                         "launch_bound",      "gpu_gaps",        "gpu_copies",
                         "no_tensor_cores",   "gpu_throttled",   "sampling_cost",
                         "busy_machine",      "not_learning",    "loss_start"})
    EXPECT_TRUE(ids.contains(id)) << id;
}

TEST(Rules, RankByGainWithQualityLastButWhatDoesNotLearnFirst) {
  Readings readings = healthy_readings();
  readings.model.parameters = 30'000'000;         // quality
  spend(readings, Phase::data_wait, 1.0);         // 9.6 %
  readings.machine.product_gflops["bf16"] = 300;  // 1.8x
  readings.vital_signs.tensors_changed = 0;
  std::vector<std::string> ids;
  for (const Finding& finding : judge(readings)) ids.push_back(finding.id);
  EXPECT_EQ(ids, (std::vector<std::string>{"not_learning", "precision", "data_loading", "model_too_large"}));
}

TEST(Troubleshooting, InTheDocumentationIsTheRules) {
  const std::string path =
      std::filesystem::path(__FILE__).parent_path().parent_path().parent_path().parent_path().string() +
      "/docs/troubleshooting.md";
  const char* write = std::getenv("BRISK_WRITE_TROUBLESHOOTING");
  if (write != nullptr && *write != '\0') write_file_atomically(path, troubleshooting_markdown());
  EXPECT_EQ(test::contents_of(path), troubleshooting_markdown()) << "run scripts/make_troubleshooting.sh";
}

}  // namespace
}  // namespace brisk
