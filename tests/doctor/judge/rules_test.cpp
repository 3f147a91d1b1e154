#include "doctor/judge/rules.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <set>

#include "base/error.h"
#include "base/files/files.h"
#include "doctor/judge/healthy_readings.h"
#include "doctor/judge/shares.h"
#include "support/scratch_folder.h"

namespace brisk {
namespace {

using test::healthy_readings;
using test::healthy_readings_on_gpu;
using test::spend;

constexpr const char* kClassifier =
    R"({"task": "classify", "model": {"type": "bert", "d_model": 256, "num_layers": 4}})";

std::string names_of(const std::vector<Finding>& findings) {
  std::string names;
  for (const Finding& finding : findings) names += finding.id + ": " + finding.cause + "\n";
  return names;
}

bool finds(const Readings& readings, const std::string& id) {
  const std::vector<Finding> findings = judge(readings);
  return std::any_of(findings.begin(), findings.end(), [&](const Finding& finding) { return finding.id == id; });
}

// That the job takes it, and is another one then. (Whatever else changes is Fix::also.)
void expect_it_can_be_set(const Job& job, const Fix& fix) {
  const std::string text = job_to_json_text(job);
  std::vector<std::string> notes, settings = {fix.key + "=" + fix.value};
  for (const auto& [key, value] : fix.also) settings.push_back(key + "=" + value);
  if (fix.key == "training.padding" && text.find("\"padding\"") == std::string::npos)
    settings.clear();  // no option yet
  try {
    const Job fixed = job_from_json_text(text, "job.json", settings, notes);
    EXPECT_EQ(job_to_json_text(fixed) == text, settings.empty()) << fix.key << " = " << fix.value;
  } catch (const UserError& error) {
    ADD_FAILURE() << error.what();
  }
}

// The first finding, which is to be `id`, with what every finding must have.
Finding first_finding(const Readings& readings, const std::string& id, double gain) {
  const std::vector<Finding> findings = judge(readings);
  if (findings.empty()) {
    ADD_FAILURE() << "no finding; expected " << id;
    return {};
  }
  const Finding& first = findings.front();
  EXPECT_EQ(first.id, id) << names_of(findings);
  EXPECT_NEAR(first.predicted_gain, gain, 0.0005) << first.cause;
  EXPECT_FALSE(first.evidence.empty());
  EXPECT_TRUE(first.cause.ends_with(".")) << first.cause;
  EXPECT_TRUE(first.fix.has_value());
  if (first.fix && first.fix->is_setting()) {
    expect_it_can_be_set(readings.job, *first.fix);
  } else {
    EXPECT_TRUE(first.fix && !first.fix->advice.empty());
  }
  EXPECT_EQ(first.sameness == Sameness::changes_maths, !first.change.empty());
  return first;
}

void expect_fix(const Finding& finding, const std::string& key, const std::string& value) {
  ASSERT_TRUE(finding.fix.has_value());
  EXPECT_EQ(finding.fix->key, key);
  EXPECT_EQ(finding.fix->value, value);
}

using Pairs = std::vector<std::pair<std::string, std::string>>;

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

// --- the batch

TEST(Padding, ShrinksWhatGrowsWithTheRowsAndAttentionByTheSquare) {
  Readings readings = healthy_readings();
  readings.job.training.padding = "max_length";
  readings.stretch.rows = 320'000;  // 200 a sequence
  // Rows: 8.5 of 10 s, half of it needed; attention: 0.8 of 10 s, (100 / 200)^2 of it needed.
  const Finding finding = first_finding(readings, "padding", 1 / (1 - 0.96 * (0.85 * 0.5 + 0.08 * 0.75)));
  expect_fix(finding, "training.padding", "\"none\"");
  EXPECT_EQ(finding.sameness, Sameness::same_maths);
  EXPECT_EQ(finding.evidence[0].value, "50 %");
  readings.stretch.rows = 161'000;
  EXPECT_FALSE(finds(readings, "padding"));
}

TEST(Padding, OfAnEncoderDoesNotReachItsHeadAndIsNotAttendedTo) {
  Readings readings = healthy_readings(kClassifier);
  readings.job.training.padding = "longest";
  readings.stretch.rows = 320'000;
  first_finding(readings, "padding", 1 / (1 - 0.96 * (0.67 * 0.5 + 0.08 * 0.5)));
}

Readings steps_of(int64_t sequences) {
  Readings readings = healthy_readings();
  readings.job.training.batch_size = sequences;
  readings.stretch.sequences_per_step = static_cast<double>(sequences);
  readings.stretch.sequences = sequences * readings.stretch.steps;
  readings.stretch.tokens = readings.stretch.rows = 100 * static_cast<double>(readings.stretch.sequences);
  readings.data.tokens = 24 * readings.stretch.tokens;  // an epoch takes as long as ever
  readings.model.parameters = 1'000'000;
  return readings;
}

TEST(BatchSize, TooSmallGrowsToTheKneeWithTheRates) {
  const Finding finding = first_finding(steps_of(8), "batch_size", 1 / (1 - 0.96 * (1 - 12.0 / 16)));
  expect_fix(finding, "training.batch_size", "32");
  EXPECT_EQ(finding.fix->also, (Pairs{{"training.learning_rate", "0.008"}, {"training.muon_learning_rate", "0.02"}}));
  EXPECT_NE(finding.fix->rule.find("square root"), std::string::npos);
  EXPECT_EQ(finding.sameness, Sameness::changes_maths);
  EXPECT_FALSE(finds(steps_of(16), "batch_size")) << "93 % of the best";
  EXPECT_EQ(finding.fix->also.size(), 2U) << "4096 rows hold 32 sequences";
  Readings divided = steps_of(8);
  divided.job.training.micro_batch_tokens = 800;
  EXPECT_EQ(judge(divided).at(0).fix->also.at(2),
            (std::pair<std::string, std::string>{"training.micro_batch_tokens", "\"auto\""}));
}

TEST(BatchSize, OfAMicroBatchGrowsWithoutChangingTheMaths) {
  Readings readings = healthy_readings();
  readings.stretch.micro_batches = 200;  // of 8
  readings.job.training.micro_batch_tokens = 800;
  const Finding finding = first_finding(readings, "batch_size", 1 / (1 - 0.96 * 0.93 * (1 - 12.0 / 16)));
  expect_fix(finding, "training.micro_batch_tokens", "\"auto\"");
  EXPECT_EQ(finding.sameness, Sameness::same_maths);
  readings.job.training.micro_batch_tokens = 4000;
  EXPECT_FALSE(finds(readings, "batch_size")) << "there is room, and something else divides the step";
  readings.job.training.micro_batch_tokens = 0;  // what brisk chose is too small
  expect_fix(judge(readings).at(0), "training.micro_batch_tokens", "4000");
}

TEST(BatchSize, TooLargeIsNearlyAllOfTheMemoryForNoSpeed) {
  Readings readings = steps_of(64);
  readings.stretch.peak_memory_bytes = 56'000'000'000;
  expect_fix(first_finding(readings, "batch_size", 1), "training.micro_batch_tokens", "4000");
  readings.stretch.peak_memory_bytes = 30'000'000'000;
  EXPECT_FALSE(finds(readings, "batch_size"));
}

TEST(Accumulation, OfSmallMicroBatchesIsNoWayToBeFast) {
  Readings readings = healthy_readings();
  readings.stretch.micro_batches = 200;
  readings.job.training.batch_size = 8;
  readings.job.training.gradient_accumulation_steps = 4;
  readings.job.training.micro_batch_tokens = 800;
  const Finding finding = first_finding(readings, "accumulation", 1 / (1 - 0.96 * 0.93 * (1 - 12.0 / 16)));
  expect_fix(finding, "training.micro_batch_tokens", "\"auto\"");
  EXPECT_FALSE(finds(readings, "batch_size")) << "one name for one thing";
  readings.stretch.micro_batches = 50;
  EXPECT_FALSE(finds(readings, "accumulation"));
}

TEST(LongOutliers, LoseTheirEndWhereTextsAreCut) {
  Readings readings = healthy_readings(kClassifier);
  readings.job.training.max_length = 1024;
  readings.data.longest = 1000;
  readings.data.lengths = {{72, 128, 38'000}, {1000, 1000, 400}};
  const double tokens = (3.8e6 + 400 * 128.0) / 4.2e6, attention = (3.8e8 + 400 * 128.0 * 128) / 7.8e8;
  const Finding finding =
      first_finding(readings, "long_outliers", 1 / (1 - 0.96 * (0.85 * (1 - tokens) + 0.08 * (1 - attention))));
  expect_fix(finding, "training.max_length", "128");
  readings.data.longest = 300;
  EXPECT_FALSE(finds(readings, "long_outliers"));
}

TEST(LongOutliers, OfALanguageModelOnlySaveAttention) {
  Readings readings = healthy_readings();
  readings.job.training.max_length = 1024;
  readings.data.longest = 1000;
  readings.data.lengths = {{72, 128, 38'000}, {1000, 1000, 400}};
  first_finding(readings, "long_outliers", 1 / (1 - 0.96 * 0.08 * (1 - (3.8e8 + 400 * 1000.0 * 128) / 7.8e8)));
}

TEST(ActivationCheckpointing, IsNotNeededWhereAllFits) {
  Readings readings = healthy_readings();
  readings.job.training.gradient_checkpointing = 1;
  readings.stretch.forwards_per_step = readings.vital_signs.forwards_per_step = 2;
  expect_fix(first_finding(readings, "activation_checkpointing", 1 / (1 - 0.96 * 0.255 / 2)),
             "training.gradient_checkpointing", "0");
  readings.machine.memory_available_bytes = 100'000'000;  // the activations take at most 236 MB
  EXPECT_FALSE(finds(readings, "activation_checkpointing"));
  readings.machine.memory_available_bytes = -1;
  readings.machine.memory_total_bytes = 600'000'000;
  EXPECT_FALSE(finds(readings, "activation_checkpointing"));
}

// --- the model

TEST(Precision, ByTheRateOfLargeProducts) {
  Readings readings = healthy_readings();
  readings.machine.product_gflops["bf16"] = 300;
  const Finding finding = first_finding(readings, "precision", 1 / (1 - 0.96 * 0.78 * (1 - 1 / 3.0)));
  expect_fix(finding, "training.precision", "\"bf16\"");
  EXPECT_EQ(finding.cause,
            "The job multiplies in fp32; bf16 is 3.00x as fast on this machine (300 GFLOP/s against 100 GFLOP/s).");
  readings.machine.product_gflops["bf16"] = 102;
  EXPECT_FALSE(finds(readings, "precision"));
}

TEST(Precision, ByStepsOfTheModelWhereTheyWereTimed) {
  Readings readings = healthy_readings();
  readings.machine.product_gflops["bf16"] = 300;
  readings.precision_tokens_per_second = {{"fp32", 16'000}, {"bf16", 20'000}};
  first_finding(readings, "precision", 1 / (1 - 0.96 * 0.2));
  readings.precision_tokens_per_second["bf16"] = 15'000;
  EXPECT_FALSE(finds(readings, "precision")) << "products are faster, this model is not";
}

TEST(Precision, OfAProcessorWithoutItsInstructionsIsSlower) {
  Readings readings = healthy_readings();
  readings.model.precision = "bf16";
  readings.machine.product_gflops["bf16"] = 40;
  expect_fix(first_finding(readings, "precision", 1 / (1 - 0.96 * 0.78 * (1 - 40 / 100.0))), "training.precision",
             "\"fp32\"");
}

TEST(HeadCost, ByTheVocabularyThatIsUsed) {
  Readings readings = healthy_readings();
  spend(readings, Phase::loss, 4.0);
  readings.data.distinct_tokens = 2000;
  expect_fix(first_finding(readings, "head_cost", 1 / (1 - 0.96 * 0.4 * 0.75)), "model.vocab_size", "2048");
  readings.job.data.tokenizer = "tokenizer.json";
  EXPECT_FALSE(judge(readings).at(0).fix->is_setting()) << "its size is not the job's to choose";
  spend(readings, Phase::loss, 3.0);
  EXPECT_FALSE(finds(readings, "head_cost"));
}

TEST(AttentionLength, IsWhatShorteningSaves) {
  Readings readings = healthy_readings();
  spend(readings, Phase::forward_attention, 1.2);
  spend(readings, Phase::backward_attention, 2.4);
  const Finding finding = first_finding(readings, "attention_length", 1 / (1 - 0.96 * 0.36 * (1 - 64 / 100.0)));
  expect_fix(finding, "training.max_length", "64");
  EXPECT_EQ(finding.cause, "Attention is 35 % of the time: half the length would gain 1.14x per token.");
  spend(readings, Phase::backward_attention, 1.3);
  EXPECT_FALSE(finds(readings, "attention_length"));
}

TEST(ModelTooLarge, ForItsData) {
  Readings readings = healthy_readings();
  readings.model.parameters = 30'000'000;
  const Finding finding = first_finding(readings, "model_too_large", 1 / (1 - 0.96 * 0.74 / 2));
  expect_fix(finding, "model.num_layers", "2");
  EXPECT_TRUE(finding.is_quality);
  readings.job.model.from = "runs/base";
  EXPECT_FALSE(finds(readings, "model_too_large")) << "it learned from more";
  readings.job.model.from = "";
  readings.model.parameters = 19'000'000;
  EXPECT_FALSE(finds(readings, "model_too_large"));
}

TEST(ModelTooLarge, ForTheMemory) {
  Readings readings = healthy_readings();
  readings.stretch.planned_memory_bytes = 80'000'000'000;
  EXPECT_FALSE(first_finding(readings, "model_too_large", 1).fix->is_setting());
}

TEST(FrozenRecomputed, IsWhatTheirForwardPassTakesInAllEpochsButOne) {
  Readings readings = healthy_readings(kClassifier);
  readings.job.training.freeze = 2;
  EXPECT_FALSE(finds(readings, "frozen_recomputed")) << "they are kept";
  readings.job.training.cache_frozen = false;
  expect_fix(first_finding(readings, "frozen_recomputed", 1 / (1 - 0.96 * (0.005 + 0.25 / 2) / 2)),
             "training.cache_frozen", "true");
  readings.course.epochs = 1;
  EXPECT_FALSE(finds(readings, "frozen_recomputed"));
}

TEST(FrozenRecomputed, WhereFrozenDropoutForbidsKeeping) {
  Readings readings = healthy_readings(kClassifier);
  readings.job.training.freeze = 2;
  readings.job.training.frozen_dropout = true;
  const Finding finding = first_finding(readings, "frozen_recomputed", 1 / (1 - 0.96 * (0.005 + 0.25 / 2) / 2));
  expect_fix(finding, "training.frozen_dropout", "false");
  EXPECT_EQ(finding.sameness, Sameness::changes_maths);
}

TEST(OptimizerCost, IsSharedByMoreSequences) {
  Readings readings = healthy_readings();
  spend(readings, Phase::optimizer, 2.0);
  expect_fix(first_finding(readings, "optimizer_cost", 1 / (1 - 0.96 * 0.21 * 7 / 8)), "training.batch_size", "256");
  spend(readings, Phase::optimizer, 1.3);
  EXPECT_FALSE(finds(readings, "optimizer_cost"));
}

TEST(DuplicateForward, GainsItsOwnTimeAndNoMore) {
  Readings readings = healthy_readings();
  readings.stretch.forwards_per_step = 2;
  first_finding(readings, "duplicate_forward", 1 / (1 - 0.96 * 0.255 / 2));
  readings.job.training.gradient_checkpointing = 1;
  EXPECT_FALSE(finds(readings, "duplicate_forward")) << "asked for";
}

// --- the course

TEST(DataLoading, GetsAsManyThreadsAsKeepUp) {
  Readings readings = healthy_readings();
  spend(readings, Phase::data_wait, 3.0);
  const Finding finding = first_finding(readings, "data_loading", 1 / (1 - 0.96 * 0.3));
  expect_fix(finding, "training.num_workers", "2");
  EXPECT_EQ(finding.sameness, Sameness::same_bits);
  readings.job.training.num_workers = 4;  // on four cores
  readings.data.file_system = "nfs";
  EXPECT_NE(first_finding(readings, "data_loading", 1 / (1 - 0.96 * 0.3)).fix->advice.find("nfs"), std::string::npos);
  spend(readings, Phase::data_wait, 0.3);
  EXPECT_FALSE(finds(readings, "data_loading"));
}

TEST(DataLoading, OnTheTrainingThreadOverlapsAsFarAsStepsAreLong) {
  Readings readings = healthy_readings();
  readings.job.training.num_workers = 0;
  readings.machine.cores = readings.stretch.threads = 1;
  readings.machine.logical_processors = 1;
  readings.thread_curve = {};
  spend(readings, Phase::forward_linear, 0.5);
  spend(readings, Phase::data_wait, 6.0);  // 0.6 of loading beside 0.4 of computing, on the one core there is
  expect_fix(first_finding(readings, "data_loading", 1 / (1 - 0.96 * 0.4)), "training.num_workers", "1");
}

TEST(EvaluationCost, IsWhatTheDefaultCadenceSaves) {
  Readings readings = healthy_readings();
  readings.job.training.eval_steps = 12;
  readings.course.evaluations_per_epoch = 100;
  // 180 s of 421 s, of which 9 s stay.
  const Finding finding = first_finding(readings, "evaluation_cost", 421.0 / (421 - 171));
  expect_fix(finding, "training.eval_steps", "\"auto\"");
  EXPECT_EQ(finding.sameness, Sameness::same_bits);
  readings.course.evaluations_per_epoch = 6;
  EXPECT_FALSE(finds(readings, "evaluation_cost"));
}

TEST(EvaluationCost, LeavesOneAnEpochToEarlyStopping) {
  Readings readings = healthy_readings();
  readings.job.training.eval_steps = 12;
  readings.job.training.early_stopping_patience = 3;
  readings.course.evaluations_per_epoch = 100;
  EXPECT_EQ(first_finding(readings, "evaluation_cost", 421.0 / (421 - 99 * 1.8)).sameness, Sameness::changes_maths);
}

TEST(LoggingCost, IsWhatRarerLinesSave) {
  Readings readings = healthy_readings();
  readings.job.training.logging_steps = 1;
  readings.course.logging_seconds = 0.02;
  readings.course.loggings_per_epoch = 1200;
  expect_fix(first_finding(readings, "logging_cost", 273.5 / (273.5 - 0.9 * 24)), "training.logging_steps", "\"auto\"");
  readings.job.training.logging_steps = 10;
  readings.job.training.histogram_steps = 10;
  expect_fix(first_finding(readings, "logging_cost", 273.5 / (273.5 - 24)), "training.histogram_steps", "0");
  readings.course.logging_seconds = 0.003;
  EXPECT_FALSE(finds(readings, "logging_cost"));
}

TEST(SavingCost, IsWhatACheckpointEveryFiveMinutesSaves) {
  Readings readings = healthy_readings();
  readings.job.training.save_steps = 10;
  readings.course.saves_per_epoch = 120;
  // 60 s of 309.5 s, of which 240 s / 5 min of half a second stay.
  expect_fix(first_finding(readings, "saving_cost", 309.5 / (309.5 - 59.6)), "training.save_steps", "\"auto\"");
  readings.course.saves_per_epoch = 8;
  EXPECT_FALSE(finds(readings, "saving_cost"));
}

TEST(SamplingCost, IsWhatSamplesTake) {
  Readings readings = healthy_readings();
  readings.job.training.sample_tokens = 256;
  readings.course.sample_seconds = 4;
  readings.course.samples_per_epoch = 5;
  expect_fix(first_finding(readings, "sampling_cost", 270.0 / 250), "training.sample_tokens", "\"auto\"");
  readings.job.training.sample_prompts = {"Once"};
  first_finding(readings, "sampling_cost", 270.0 / (270 - 15));  // a quarter stays
  readings.course.sample_seconds = 1;
  EXPECT_FALSE(finds(readings, "sampling_cost"));
}

// --- the machine

TEST(TooFewThreads, LeaveCoresIdle) {
  Readings readings = healthy_readings();
  readings.job.training.threads = 1;
  readings.stretch.threads = 1;
  const Finding finding = first_finding(readings, "too_few_threads", 1 / (1 - 0.96 * 0.98 * (1 - 4.5 / 16)));
  expect_fix(finding, "training.threads", "\"auto\"");
  EXPECT_EQ(finding.sameness, Sameness::same_maths) << "gradients of norms and biases are summed by thread";
  EXPECT_EQ(finding.cause, "1 thread is computing on 4 cores, so 3 cores are idle.");
  readings.thread_curve = {};
  first_finding(readings, "too_few_threads", 1 / (1 - 0.96 * 0.98 * 0.75));
  readings.thread_curve = {{1, 4500}, {2, 4550}, {4, 4400}};
  EXPECT_FALSE(finds(readings, "too_few_threads")) << "more were measured, and are no faster";
  readings.stretch.threads = 4;
  EXPECT_FALSE(finds(readings, "too_few_threads"));
}

TEST(Oversubscribed, WaitForTheCoreWithOneMore) {
  Readings readings = healthy_readings();
  readings.job.training.threads = readings.stretch.threads = 6;
  readings.thread_curve = {};
  expect_fix(first_finding(readings, "oversubscribed", 1 / (1 - 0.96 * 0.98 * 0.25)), "training.threads", "\"auto\"");
  readings.thread_curve = {{4, 16'000}, {6, 8000}};
  first_finding(readings, "oversubscribed", 1 / (1 - 0.96 * 0.98 * 0.5));
  readings.stretch.threads = 4;
  EXPECT_FALSE(finds(readings, "oversubscribed"));
}

TEST(QuotaThrottled, IsStoppedByTheCgroup) {
  Readings readings = healthy_readings();
  readings.machine.quota_cores = 4;
  readings.stretch.throttled_seconds = 3;
  EXPECT_FALSE(first_finding(readings, "quota_throttled", 1 / 0.7).fix->is_setting()) << "the quota is not the job's";
  readings.machine.quota_cores = 2.5;
  expect_fix(first_finding(readings, "quota_throttled", 1), "training.threads", "2");
  readings.stretch.throttled_seconds = 0.1;
  EXPECT_FALSE(finds(readings, "quota_throttled"));
}

TEST(Swapping, IsTimeSpentWaitingForTheDisk) {
  Readings readings = healthy_readings();
  readings.stretch.swapped_bytes = 1'000'000'000;
  readings.stretch.major_faults = 1000;
  readings.stretch.disk_wait_seconds = 4;
  expect_fix(first_finding(readings, "swapping", 1 / (1 - 0.96 * 0.4)), "training.micro_batch_tokens", "1600");
  readings.stretch.major_faults = 5;
  EXPECT_FALSE(finds(readings, "swapping")) << "what lies there is not used";
}

TEST(IdleGpu, BesideATrainingOnTheCpu) {
  Readings readings = healthy_readings();
  readings.machine.gpus = {"a GPU"};
  readings.machine.no_gpu = "";
  readings.job.training.padding = "max_length";
  readings.stretch.rows = 320'000;
  expect_fix(first_finding(readings, "idle_gpu", 1), "device", "\"cuda\"");
  readings.machine.visible_devices = "";
  readings.stretch.rows = 160'000;
  EXPECT_NE(first_finding(readings, "idle_gpu", 1).cause.find("CUDA_VISIBLE_DEVICES"), std::string::npos);
  readings.machine.gpus = {};
  EXPECT_FALSE(finds(readings, "idle_gpu"));
}

TEST(IdleGpu, BesideTheOneThatTrains) {
  Readings readings = healthy_readings_on_gpu();
  readings.machine.gpus = {"a GPU", "a GPU"};
  EXPECT_FALSE(first_finding(readings, "idle_gpu", 1).fix->is_setting());
}

TEST(BusyMachine, TakesProcessorsThatTheTrainingWants) {
  Readings readings = healthy_readings();
  readings.stretch.other_seconds = 20;
  first_finding(readings, "busy_machine", 1 / (1 - 0.96 * 0.98 * 0.5));
  readings.stretch.other_seconds = 39;
  first_finding(readings, "busy_machine", 1 / (1 - 0.96 * 0.98 * 0.9));
  readings.machine.logical_processors = 8;
  EXPECT_FALSE(finds(readings, "busy_machine")) << "there is room for both";
  readings.machine.logical_processors = 4;
  readings.stretch.other_seconds = 3;
  EXPECT_FALSE(finds(readings, "busy_machine"));
}

// --- the result

TEST(NotLearning, GoesBeforeEverything) {
  Readings readings = healthy_readings();
  readings.machine.product_gflops["bf16"] = 300;
  readings.vital_signs.tensors_with_gradient = 50;
  readings.vital_signs.without_gradient = {"layers.3.up.weight", "layers.3.up.bias"};
  const Finding finding = first_finding(readings, "not_learning", 1);
  EXPECT_EQ(finding.cause, "2 tensors that should be trained get no gradient.");
  EXPECT_NE(finding.evidence[0].note.find("layers.3.up.weight"), std::string::npos);
}

TEST(NotLearning, IsEachOfItsSigns) {
  for (const auto& change : std::vector<void (*)(VitalSigns&)>{[](VitalSigns& signs) { signs.loss_finite = false; },
                                                               [](VitalSigns& signs) { signs.loss_falling = false; },
                                                               [](VitalSigns& signs) { signs.tensors_changed = 51; }}) {
    Readings readings = healthy_readings();
    change(readings.vital_signs);
    first_finding(readings, "not_learning", 1);
    readings.vital_signs.measured = false;
    EXPECT_FALSE(finds(readings, "not_learning"));
  }
}

TEST(LossStart, IsFarFromEqualChances) {
  Readings readings = healthy_readings();
  readings.vital_signs.first_loss = 15;
  first_finding(readings, "loss_start", 1);
  readings.vital_signs.first_loss = 9.9;
  EXPECT_FALSE(finds(readings, "loss_start"));
  readings.vital_signs.first_loss = 2;
  readings.vital_signs.expected_first_loss = -1;
  EXPECT_FALSE(finds(readings, "loss_start")) << "a trained model";
}

TEST(Overfitting, RisesWhileTheTrainingLossFalls) {
  Readings readings = healthy_readings();
  for (size_t i = 6; i < 10; ++i) readings.history.validation[i].second += 0.3 * static_cast<double>(i - 5);
  expect_fix(first_finding(readings, "overfitting", 1), "training.early_stopping_patience", "3");
  readings.history.validation[9].second = readings.history.validation[8].second - 0.1;
  EXPECT_FALSE(finds(readings, "overfitting")) << "it falls again";
}

TEST(Plateau, HasNotMovedForAThirdOfTheRun) {
  Readings readings = healthy_readings();
  for (size_t i = 6; i < 10; ++i) readings.history.validation[i].second = readings.history.validation[5].second;
  first_finding(readings, "plateau", 1);
  readings.history.validation[9].second *= 0.99;
  EXPECT_FALSE(finds(readings, "plateau"));
}

TEST(LearningRate, IsFarFromTheBestOfASweep) {
  Readings readings = healthy_readings();
  readings.rate_curve = {{0.3, 0, 4.2}, {1, 0, 4.0}, {3, 0, 3.5}, {10, 0, -1}};
  const Finding finding = first_finding(readings, "learning_rate", 1);
  expect_fix(finding, "training.learning_rate", "0.012");
  EXPECT_EQ(finding.fix->also, (Pairs{{"training.muon_learning_rate", "0.03"}}));
  readings.rate_curve[2].loss = 3.95;
  EXPECT_FALSE(finds(readings, "learning_rate"));
  readings.rate_curve = {{1, 0, 4.0}, {10, 0, -1}};
  EXPECT_FALSE(finds(readings, "learning_rate")) << "what diverged is not lower";
}

// --- on a GPU

TEST(LaunchBound, ComputesTwiceTheRowsInTheSameLaunches) {
  Readings readings = healthy_readings_on_gpu();
  readings.stretch.gpu.kernels_per_step = 20'000;
  readings.stretch.gpu.mean_kernel_seconds = 2e-6;
  expect_fix(first_finding(readings, "launch_bound", 1 / (1 - 0.96 * 0.4 * 0.5)), "training.batch_size", "64");
  readings.stretch.gpu.mean_kernel_seconds = 5e-6;
  EXPECT_FALSE(finds(readings, "launch_bound"));
}

TEST(GpuGaps, AreTimeWithoutAKernel) {
  Readings readings = healthy_readings_on_gpu();
  readings.stretch.gpu.idle_share = 0.2;
  first_finding(readings, "gpu_gaps", 1 / (1 - 0.96 * 0.2));
  readings.stretch.gpu.idle_share = 0.04;
  EXPECT_FALSE(finds(readings, "gpu_gaps"));
}

TEST(GpuCopies, AreNotOverlapped) {
  Readings readings = healthy_readings_on_gpu();
  readings.stretch.gpu.copy_share = 0.1;
  first_finding(readings, "gpu_copies", 1 / (1 - 0.96 * 0.1));
  readings.stretch.gpu.copy_share = 0.02;
  EXPECT_FALSE(finds(readings, "gpu_copies"));
}

TEST(NoTensorCores, ByTheFormatThatHasThem) {
  Readings readings = healthy_readings_on_gpu();
  readings.model.precision = "fp32";
  readings.stretch.gpu.tensor_core_share = 0;
  expect_fix(first_finding(readings, "no_tensor_cores", 1 / (1 - 0.96 * 0.78 * (1 - 1 / 14.0))), "training.precision",
             "\"bf16\"");
  EXPECT_FALSE(finds(readings, "precision")) << "one name for one thing";
  readings.stretch.gpu.tensor_core_share = -1;  // not known
  EXPECT_FALSE(finds(readings, "no_tensor_cores"));
  EXPECT_TRUE(finds(readings, "precision"));
}

TEST(GpuThrottled, ByTheClocksThatAreMissing) {
  Readings readings = healthy_readings_on_gpu();
  readings.stretch.gpu.throttled = {{"power cap", 0.1}, {"thermal", 0.5}};
  readings.stretch.gpu.sm_mhz = 990;
  const Finding finding = first_finding(readings, "gpu_throttled", 1 / (1 - 0.96 * 0.98 * 0.5 * 0.5));
  EXPECT_NE(finding.cause.find("thermal"), std::string::npos);
  readings.stretch.gpu.throttled = {{"thermal", 0.02}};
  EXPECT_FALSE(finds(readings, "gpu_throttled"));
}

// --- curves

TEST(Curve, HasAKneeAndSpeedsBetweenItsPoints) {
  const std::vector<CurvePoint> curve = {{32, 16'000}, {8, 12'000}, {16, -1}};
  EXPECT_EQ(speed_at(curve, 20), 14'000);
  EXPECT_EQ(speed_at(curve, 1), 12'000);
  EXPECT_EQ(speed_at(curve, 64), 16'000);
  EXPECT_EQ(knee_of(curve)->x, 32);
  EXPECT_EQ(knee_of({}), nullptr);
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
