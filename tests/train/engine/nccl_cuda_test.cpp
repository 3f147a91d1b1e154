// The path of several ranks on a GPU, by a rank that is alone: NCCL, the queue beside the device's, marks within graphs, parts.
// Several ranks on one GPU are processes: tests/program/gpu_ranks_cuda_test.cpp.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "comm/nccl.h"
#include "comm/shared_memory.h"
#include "support/tiny_job.h"
#include "tensor/device.h"

namespace brisk {
namespace {

using namespace brisk::testing;

class OneRankOverNccl : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    if (cuda_gpus(&why).empty()) GTEST_SKIP() << "no NVIDIA GPU to run this on: " << why;
    cuda_device();  // is this thread's
    try {
      alone_.connect_gpus();
    } catch (const UserError& error) {
      GTEST_SKIP() << error.what();
    }
  }

  EngineOptions options(bool over_nccl) {
    EngineOptions options = tiny_options(gpt_shape());
    options.device = &cuda_device();
    if (over_nccl) options.processes = &alone_;
    options.bucket_bytes = 4096;  // a dozen buckets
    return options;
  }

  // As the trainer runs it: the next batch is there before this step's numbers are.
  static Curve train_ahead(const EngineOptions& options, const std::vector<StepBatch>& steps) {
    Engine engine(options);
    engine.initialise(options.seed);
    Ledger ledger;
    Curve curve;
    for (size_t i = 0; i < steps.size(); ++i) {
      const auto next = [&]() -> const StepBatch* { return i + 1 < steps.size() ? &steps[i + 1] : nullptr; };
      const StepResult result = engine.train_step(steps[i], static_cast<int64_t>(i) + 1, 3e-3, ledger, {}, next);
      curve.losses.push_back(result.loss_sum / static_cast<double>(result.tokens));
      curve.gradient_norms.push_back(result.gradient_norm);
      curve.correct.push_back(result.correct);
    }
    curve.masters = values_of(cuda_device(), engine.parameters().flat_master());
    return curve;
  }

  std::vector<std::unique_ptr<Communicator>> group_ = make_thread_group(1);
  ConnectedProcesses alone_{*group_.front()};
  const Corpus corpus_ = tiny_corpus(2000);
  Threads threads_{1};
};

TEST_F(OneRankOverNccl, HasTheBitsOfOneWithoutOthers) {
  for (const DType type : {DType::f32, DType::bf16, DType::f16}) {
    for (const bool muon : {false, true}) {
      for (const int micro_batch : {32, 8}) {
        const std::vector<StepBatch> steps = packed_steps(corpus_, 12, 32, micro_batch);
        const auto train = [&](bool over_nccl) {
          EngineOptions job = options(over_nccl);
          job.compute_type = type;
          if (muon) job.muon = MuonOptions{};
          return train_ahead(job, steps);
        };
        SCOPED_TRACE(fmt::format("type {}, muon {}, micro-batch {}", static_cast<int>(type), muon, micro_batch));
        expect_same_bits(train(true), train(false));
      }
    }
  }
}

// A pass that was begun and given up: its reductions write to the gradient of the next.
TEST_F(OneRankOverNccl, ForgetsWhatWasBegunWhenParametersChange) {
  const std::vector<StepBatch> steps = packed_steps(corpus_, 6, 32, 32);
  Engine engine(options(true));
  Ledger ledger;
  const auto run = [&](bool ahead) {
    engine.initialise(7);
    std::vector<double> norms;
    for (size_t i = 0; i < 4; ++i) {
      const auto next = [&]() -> const StepBatch* { return ahead ? &steps[5] : nullptr; };
      norms.push_back(engine.train_step(steps[i], static_cast<int64_t>(i) + 1, 0.0, ledger, {}, next).gradient_norm);
      engine.parameters_changed();
    }
    return norms;
  };
  EXPECT_EQ(run(true), run(false));
}

// Parts of a step that one rank computes, added on the GPU.
TEST_F(OneRankOverNccl, AddsPartsAsOneWithoutOthersDoes) {
  EngineOptions job = options(false);
  std::vector<StepBatch> steps;
  for (const StepBatch& whole : packed_steps(corpus_, 6, 32, 8)) {
    steps.push_back(whole);
    steps.back().part_ends = {1, 2, 3, 4};
  }
  job.parts = 4;
  const Curve alone = train_ahead(job, steps);
  job.processes = &alone_;
  expect_same_bits(train_ahead(job, steps), alone);
  job.parts = 0;
  job.processes = nullptr;
  for (StepBatch& step : steps) step.part_ends = {};
  expect_same_curve(train_ahead(job, steps), alone, 1e-5);
}

// What the distributed path costs a rank that is alone. BRISK_TIMES=1 (bench/gpu_ranks.sh).
TEST_F(OneRankOverNccl, CostsLittle) {
  if (std::getenv("BRISK_TIMES") == nullptr) GTEST_SKIP() << "times are taken with BRISK_TIMES=1";
  DecoderConfig model = gpt_shape();
  model.vocab_size = 8192;
  model.d_model = 768;
  model.num_layers = 6;
  model.num_heads = model.num_kv_heads = 12;
  model.d_ff = 3072;
  const std::vector<StepBatch> steps = packed_steps(corpus_, 1, 640, 640);
  const auto seconds_of_step = [&](bool over_nccl) {
    EngineOptions job = tiny_options(model);
    job.capacity = {640 * 24, 640, model.max_length};
    job.compute_type = DType::bf16;
    job.device = &cuda_device();
    if (over_nccl) job.processes = &alone_;
    Engine engine(job);
    engine.initialise(job.seed);
    Ledger ledger;
    constexpr int kWarm = 10, kTimed = 100;
    auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kWarm + kTimed; ++i) {
      if (i == kWarm) start = std::chrono::steady_clock::now();
      engine.train_step(steps[0], i + 1, 1e-4, ledger, {}, [&] { return &steps[0]; });
    }
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / kTimed;
  };
  double without = 1e9, with = 1e9;
  for (int round = 0; round < 5; ++round) {
    without = std::min(without, seconds_of_step(false));
    with = std::min(with, seconds_of_step(true));
  }
  std::printf("one rank over NCCL: %.3f ms a step, without %.3f: %+.2f %%\n", 1e3 * with, 1e3 * without,
              100 * (with / without - 1));
  EXPECT_LT(with, 1.01 * without);
}

}  // namespace
}  // namespace brisk
