#include "train/run/plan/resource_checks.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/machine/machine.h"
#include "ops/tape/gpu_workspace.h"
#include "support/tiny_job.h"
#include "train/record/run_text.h"
#include "train/run/plan/engine_plan.h"
#include "train/task/task.h"

namespace brisk {
namespace {

// A model whose activations are most of the memory, on a machine with as much as the test says.
class FitChecks : public ::testing::Test {
 protected:
  FitChecks() : options_(testing::tiny_options(testing::gpt_shape())) { options_.capacity = {4096, 512, 24}; }
  EngineOptions options_;
};

TEST_F(FitChecks, APlanIsTheSumOfItsParts) {
  for (const Backend backend : {Backend::cpu, Backend::cuda}) {
    options_.backend = backend;
    const MemoryPlan plan = plan_memory(options_);
    EXPECT_EQ(plan.state.total() + plan.optimizer_bytes, plan.state_bytes);
    EXPECT_EQ(plan.state.masters, plan.state.gradients);
    EXPECT_EQ(plan.state.moments, 2 * plan.state.gradients);
    EXPECT_GT(plan.loss_bytes, 0);
    EXPECT_LT(plan.loss_bytes + plan.batch_bytes, plan.activation_bytes);
    EXPECT_EQ(plan.total(), plan.state_bytes + plan.activation_bytes + plan.evaluation_bytes + plan.workspace_bytes);
    if (backend == Backend::cpu) {
      EXPECT_GT(plan.workspace_bytes, 0);
      EXPECT_GT(plan.evaluation_bytes, 0);
    }
  }
}

TEST_F(FitChecks, OnAGpuWorkspacesAreInThePlanAndEvaluationUsesTheMemoryOfSteps) {
  options_.backend = Backend::cuda;
  const MemoryPlan plan = plan_memory(options_);
  EXPECT_GT(plan.workspace_bytes, kGemmWorkspaceBytes);
  EXPECT_EQ(plan.evaluation_bytes, 0);
  options_.capacity = {8192, 1024, 24};
  const MemoryPlan twice = plan_memory(options_);
  EXPECT_GE(twice.workspace_bytes, plan.workspace_bytes);
}

TEST_F(FitChecks, WhatCudnnTakesIsSaidBesideTheTotalWhereItMayBeChosen) {
  DecoderConfig& model = testing::decoder_of(options_);
  model.d_model = 128;
  model.num_heads = model.num_kv_heads = 2;
  model.max_length = 1024;
  model.dropout = 0;
  options_.capacity = {8192, 8192, 1024};
  options_.compute_type = DType::bf16;
  options_.backend = Backend::cuda;
  const MemoryPlan plan = plan_memory(options_);
  EXPECT_GT(plan.library_bytes, 0);
  // The queries' gradient in f32, eight times instead of once.
  EXPECT_NEAR(static_cast<double>(plan.library_bytes), 7.0 * 8192 * 128 * 4, 4.0 * (1 << 20));
  EXPECT_NE(memory_table(plan).find("cuDNN"), std::string::npos) << memory_table(plan);
  const auto wanted_with = [&](const std::function<void(EngineOptions&)>& change) {
    EngineOptions changed = options_;
    change(changed);
    return plan_memory(changed).library_bytes;
  };
  EXPECT_EQ(wanted_with([](EngineOptions& o) { testing::decoder_of(o).dropout = 0.1; }), 0)
      << "its dropout has other bits";
  EXPECT_EQ(wanted_with([](EngineOptions& o) { o.compute_type = DType::f32; }), 0);
  EXPECT_EQ(wanted_with([](EngineOptions& o) { o.capacity = {8192, 8192, 256}; }), 0) << "ours are faster";
  EXPECT_EQ(wanted_with([](EngineOptions& o) { o.backend = Backend::cpu; }), 0);
  EXPECT_EQ(memory_table(plan_memory(testing::tiny_options(testing::gpt_shape()))).find("cuDNN"), std::string::npos);
}

TEST_F(FitChecks, EveryReliefIsThePlanWithThatSetting) {
  const int64_t now = plan_memory(options_).total();
  EngineOptions recomputed = options_;
  recomputed.checkpoint_every = 1;
  EngineOptions half = options_;
  half.compute_type = DType::bf16;
  bool recomputes = false, halves = false;
  for (const MemoryRelief& relief : memory_reliefs(options_, now)) {
    EXPECT_LT(relief.total, now) << relief.setting;
    if (relief.setting == "\"training.gradient_checkpointing\": 1") {
      recomputes = true;
      EXPECT_EQ(relief.total, plan_memory(recomputed).total());
    }
    if (relief.setting == "\"training.precision\": \"bf16\"") {
      halves = true;
      EXPECT_EQ(relief.total, plan_memory(half).total());
    }
  }
  EXPECT_TRUE(recomputes);
  EXPECT_TRUE(halves);
}

TEST_F(FitChecks, TheMicroBatchOfferedIsTheLargestThatFits) {
  EngineOptions quarter = options_;
  quarter.capacity = options_.layout.capacity(1024, 24);
  const std::vector<MemoryRelief> reliefs = memory_reliefs(options_, plan_memory(quarter).total() + kAdviceSlack);
  ASSERT_FALSE(reliefs.empty());
  EXPECT_EQ(reliefs[0].setting, "\"training.micro_batch_tokens\": 1024");
  EXPECT_EQ(reliefs[0].total, plan_memory(quarter).total());
}

TEST_F(FitChecks, WhatHasBeenSetIsNotOfferedAgain) {
  options_.checkpoint_every = 1;
  options_.compute_type = DType::bf16;
  options_.capacity = {24, 1, 24};
  for (const MemoryRelief& relief : memory_reliefs(options_, 0)) {
    EXPECT_EQ(relief.setting.find("checkpointing"), std::string::npos);
    EXPECT_EQ(relief.setting.find("bf16"), std::string::npos);
    if (relief.setting.find("max_length") == std::string::npos) {  // shorter texts make smaller ones possible
      EXPECT_EQ(relief.setting.find("micro_batch"), std::string::npos);
    }
  }
}

// The overrides that a line of advice asks for: "\"training.precision\": \"bf16\" and \"training...\": 512".
std::vector<std::string> overrides_of(std::string advice) {
  std::vector<std::string> overrides;
  constexpr std::string_view kAnd = " and ";
  for (size_t end = 0; end != std::string::npos;) {
    end = advice.find(kAnd);
    std::string one = advice.substr(0, end);
    const size_t quote = one.find('"', 1);
    overrides.push_back(one.substr(1, quote - 1) + "=" + one.substr(quote + 3));
    if (end != std::string::npos) advice = advice.substr(end + kAnd.size());
  }
  return overrides;
}

TEST_F(FitChecks, AJobThatFollowsALineOfTheAdviceIsNotRefused) {
  const char* text =
      R"({"device": "cpu", "model": {"d_model": 256, "num_layers": 8, "num_heads": 4, "vocab_size": 4000},
                         "training": {"max_length": 256, "batch_size": 64}})";
  const auto planned = [&](const std::vector<std::string>& overrides) {
    std::vector<std::string> notes;
    Job job = job_from_json_text(text, "job.json", overrides, notes);
    resolve_defaults(job);
    const LengthFigures lengths{.longest = job.training.max_length,
                                .mean = static_cast<double>(job.training.max_length)};
    return plan_engine(*make_task(job), job, cpu_device(), {lengths}).options;
  };
  std::set<std::string> followed;
  for (const std::vector<std::string>& base : {std::vector<std::string>{"training.precision=fp32"},
                                               {"training.precision=bf16"},
                                               {"training.precision=fp32", "training.optimizer=adamw"},
                                               {"training.precision=fp32", "training.micro_batch_tokens=256"}}) {
    const EngineOptions options = planned(base);
    const int64_t now = plan_memory(options).total();
    for (const double share : {0.98, 0.8, 0.6, 0.45, 0.3}) {
      const auto available = static_cast<int64_t>(share * static_cast<double>(now));
      for (const MemoryRelief& relief : memory_reliefs(options, available)) {
        std::vector<std::string> all = base;
        for (const std::string& setting : overrides_of(relief.setting)) {
          std::erase_if(all, [&](const std::string& other) {  // the job has the key once
            return other.substr(0, other.find('=')) == setting.substr(0, setting.find('='));
          });
          all.push_back(setting);
        }
        const int64_t then = plan_memory(planned(all)).total();
        EXPECT_LE(then, relief.total) << relief.setting;
        if (!fits(relief, available)) continue;
        EXPECT_LE(then, available) << relief.setting;
        followed.insert(relief.setting.substr(0, relief.setting.find(':')));
      }
    }
  }
  EXPECT_GE(followed.size(), 4u) << "micro-batch, checkpointing, precision, optimizer or length";
}

TEST_F(FitChecks, AJobThatIsTooLargeIsRefusedWithATableAndWhatWouldFit) {
  testing::decoder_of(options_).d_model = 1 << 14;
  testing::decoder_of(options_).d_ff = 1 << 16;
  testing::decoder_of(options_).num_layers = 20;
  try {
    refuse_what_cannot_fit(options_);
    FAIL() << "it fits into " << memory_available();
  } catch (const UserError& error) {
    const std::string text = error.what();
    for (const char* part : {"this job needs", "are available", "weights (fp32 masters)", "gradients",
                             "optimizer (moments)", "activations", "loss (logits", "total", "memory needed",
                             "\"training.gradient_checkpointing\": 1", "\"training.optimizer\": \"muon\"", "no"}) {
      EXPECT_NE(text.find(part), std::string::npos) << part << " in:\n" << text;
    }
  }
}

TEST_F(FitChecks, WhatFitsIsPlannedAndNotRefused) {
  EXPECT_EQ(refuse_what_cannot_fit(options_).total(), plan_memory(options_).total());
  EXPECT_TRUE(fits_in_memory(options_));
  EXPECT_FALSE(fits_in_memory(options_, 1 << 30)) << "as one of many processes of the machine";
}

TEST(GpuMemory, TheExplanationIsAskedForWhenItIsNeeded) {
  int asked = 0;
  {
    const GpuMemoryExplanation explanation([&] {
      ++asked;
      return std::string("weights 3 GiB");
    });
    EXPECT_EQ(asked, 0);
    EXPECT_EQ(GpuMemoryExplanation::text(), "\nweights 3 GiB");
    EXPECT_EQ(asked, 1);
  }
  EXPECT_EQ(GpuMemoryExplanation::text(), "");
}

}  // namespace
}  // namespace brisk
