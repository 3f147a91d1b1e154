// What must not change the loss curve: how a step is divided, whether activations are kept, threads, the back end, a
// resume, the device. Dropout is on everywhere, since it is the first thing to differ.
#include "train/engine/engine.h"

#include <gtest/gtest.h>

#include "infer/answer/generate.h"
#include "infer/forward/forward_run.h"
#include "ops/optimizer/parameters.h"
#include "support/numeric.h"
#include "support/sanitized.h"
#include "support/tiny_job.h"

namespace brisk {
namespace {

using namespace brisk::testing;

class TrainingCurve : public ::testing::TestWithParam<std::tuple<Shape, const char*>> {
 protected:
  TrainingCurve() {
    if (std::get<1>(GetParam()) == std::string("muon")) options_.muon = MuonOptions{.rate_ratio = 2};
  }
  // Muon divides by the size of every singular value, so that it carries rounding further than AdamW does.
  double rounding(double of_adamw) const { return options_.muon ? 20 * of_adamw : of_adamw; }

  Threads threads_{1};
  EngineOptions options_ = tiny_options(std::get<0>(GetParam()).config);
  Corpus corpus_ = tiny_corpus();
};
INSTANTIATE_TEST_SUITE_P(Decoder, TrainingCurve,
                         ::testing::Combine(::testing::ValuesIn(both_shapes()), ::testing::Values("adamw", "muon")),
                         [](const auto& info) { return std::get<0>(info.param).name + "_" + std::get<1>(info.param); });

TEST_P(TrainingCurve, FallsAndDependsOnTheSeedOfDropout) {
  const std::vector<StepBatch> steps(kSanitized ? 12 : 40, packed_steps(corpus_, 1)[0]);
  const Curve curve = train_curve(options_, steps);
  EXPECT_LT(curve.losses.back(), curve.losses.front() - (kSanitized ? 0.2 : 1.0));
  Engine engine(options_);
  engine.initialise(options_.seed);
  options_.seed = 6;
  Engine other(options_);
  other.initialise(5);
  Curve same_start, other_draws;
  train_on(engine, std::span(steps).first(1), same_start);
  train_on(other, std::span(steps).first(1), other_draws);
  EXPECT_EQ(same_start.losses[0], curve.losses[0]);
  EXPECT_NE(other_draws.losses[0], curve.losses[0]);
}

TEST_P(TrainingCurve, IsTheSameToTheBitWithTheSameSeed) {
  const Threads two(2);
  for (const DType type : {DType::f32, DType::bf16}) {
    options_.compute_type = type;
    const std::vector<StepBatch> steps = packed_steps(corpus_, 4);
    expect_same_bits(train_curve(options_, steps), train_curve(options_, steps));
  }
}

TEST_P(TrainingCurve, IsTheSamePackedAndSequenceBySequence) {
  const Curve packed = train_curve(options_, packed_steps(corpus_, 6, 16, 16));
  expect_same_curve(train_curve(options_, packed_steps(corpus_, 6, 16, 1)), packed, rounding(1e-5));
}

TEST_P(TrainingCurve, IsTheSameWithLabelSmoothingPackedAndSequenceBySequence) {
  options_.label_smoothing = 0.1;
  const Curve packed = train_curve(options_, packed_steps(corpus_, 4, 16, 16));
  expect_same_curve(train_curve(options_, packed_steps(corpus_, 4, 16, 1)), packed, rounding(1e-5));
  options_.label_smoothing = 0;
  EXPECT_GT(std::fabs(train_curve(options_, packed_steps(corpus_, 4, 16, 16)).losses.back() - packed.losses.back()),
            1e-3);
}

TEST_P(TrainingCurve, IsTheSameFor32SequencesAtOnceAndAccumulatedFourTimesEight) {
  const Curve together = train_curve(options_, packed_steps(corpus_, 6, 32, 32));
  expect_same_curve(train_curve(options_, packed_steps(corpus_, 6, 32, 8)), together, rounding(1e-5));
}

TEST_P(TrainingCurve, IsTheSameWhateverMicroBatchTheLoaderCuts) {
  const auto steps_of = [&](int64_t tokens, int workers) {
    Loader loader(corpus_.sequences(),
                  {.sequences_per_step = 24, .micro_batch_rows = {tokens}, .seed = 3, .workers = workers});
    std::vector<StepBatch> steps;
    for (int i = 0; i < 5; ++i) steps.push_back(loader.next());
    return steps;
  };
  const Curve wide = train_curve(options_, steps_of(1024, 0));
  const std::vector<StepBatch> narrow = steps_of(40, 2);
  ASSERT_GT(narrow[0].micro_batches.size(), 4u);
  expect_same_curve(train_curve(options_, narrow), wide, rounding(1e-5));
}

TEST_P(TrainingCurve, IsTheSameToTheBitWhenActivationsAreRecomputed) {
  const std::vector<StepBatch> steps = packed_steps(corpus_, 4, 32, 8);
  for (const DType type : {DType::f32, DType::bf16}) {
    options_.compute_type = type;
    options_.checkpoint_every = 0;
    const Curve kept = train_curve(options_, steps);
    for (const int64_t every : {1, 2}) {
      SCOPED_TRACE(every);
      options_.checkpoint_every = every;
      expect_same_bits(train_curve(options_, steps), kept);
    }
  }
}

TEST_P(TrainingCurve, IsTheSameOnOneThreadAndOnTwo) {
  // Large enough that every op has work for two.
  decoder_of(options_).d_model = 128;
  decoder_of(options_).d_ff = 256;
  decoder_of(options_).vocab_size = 517;
  const std::vector<StepBatch> steps = packed_steps(corpus_, kSanitized ? 2 : 6, kSanitized ? 8 : 32);
  const Curve one = train_curve(options_, steps);
  const Threads two(2);
  expect_same_curve(train_curve(options_, steps), one, rounding(1e-5));
}

TEST_P(TrainingCurve, IsTheSameResumedAndUninterruptedToTheBit) {
  const Threads two(2);
  for (const DType type : {DType::f32, DType::bf16}) {
    options_.compute_type = type;
    const std::vector<StepBatch> steps = packed_steps(corpus_, 4, 16, 8);
    const Curve whole = train_curve(options_, steps);
    Curve resumed;
    std::vector<std::vector<float>> state;
    const auto arrays = [](ParameterStore& store) {
      return std::vector<Tensor>{store.flat_master(), store.flat_first_moment(), store.flat_second_moment()};
    };
    {
      Engine engine(options_);
      engine.initialise(options_.seed);
      train_on(engine, std::span(steps).first(2), resumed);
      for (const Tensor& array : arrays(engine.parameters())) state.push_back(values_of(cpu_device(), array));
    }
    Engine engine(options_);
    engine.initialise(99);
    for (size_t i = 0; i < state.size(); ++i) put_values(cpu_device(), arrays(engine.parameters())[i], state[i]);
    engine.parameters_changed();
    train_on(engine, std::span(steps).last(2), resumed, 3);
    expect_same_bits(resumed, whole);
  }
}

TEST_P(TrainingCurve, IsTheSameOnTheReferenceAndOnEveryInstructionSet) {
  const std::vector<StepBatch> steps = packed_steps(corpus_, kSanitized ? 2 : 3, 16, 8);
  for (const DType type : {DType::f32, DType::bf16}) {
    options_.compute_type = type;
    options_.backend = Backend::reference;
    const Curve reference = train_curve(options_, steps);
    options_.backend = Backend::cpu;
    for_each_isa([&](Isa) {
      expect_same_curve(train_curve(options_, steps), reference, type == DType::f32 ? rounding(1e-5) : 1e-2);
    });
  }
}

TEST_P(TrainingCurve, IsTheSameInAProgramPlannedForLargerMicroBatches) {
  const std::vector<StepBatch> steps = packed_steps(corpus_, 4, 16, 2);
  const Curve roomy = train_curve(options_, steps);
  options_.capacity = {48, 2, 24};
  expect_same_curve(train_curve(options_, steps), roomy, rounding(1e-6));
}

TEST_P(TrainingCurve, IsNotDisturbedByAnEvaluation) {
  const std::vector<StepBatch> steps = packed_steps(corpus_, 4);
  const Curve alone = train_curve(options_, steps);
  Engine engine(options_);
  engine.initialise(options_.seed);
  Curve with_evaluation;
  Ledger ledger;
  for (size_t i = 0; i < steps.size(); ++i) {
    train_on(engine, std::span(steps).subspan(i, 1), with_evaluation, static_cast<int64_t>(i) + 1);
    engine.evaluate(*corpus_.sequences(), ledger);
  }
  expect_same_bits(with_evaluation, alone);
}

std::vector<float> gradient_of(Engine& engine, const std::string& name) {
  return values_of(engine.parameters().device(), engine.parameters().find(name)->gradient);
}

TEST_P(TrainingCurve, TiedHeadGetsTheGradientsOfBothUses) {
  const std::vector<StepBatch> steps = packed_steps(corpus_, 1, 16, 4);
  decoder_of(options_).tie_embeddings = true;
  Engine tied(options_);
  decoder_of(options_).tie_embeddings = false;
  Engine untied(options_);
  tied.initialise(5);
  untied.initialise(5);
  put_values(cpu_device(), untied.parameters().find("head.weight")->master,
             values_of(cpu_device(), tied.parameters().find("embedding.weight")->master));
  untied.parameters_changed();
  Ledger ledger;
  const StepResult a = tied.train_step(steps[0], 1, 0.0, ledger), b = untied.train_step(steps[0], 1, 0.0, ledger);
  EXPECT_NEAR(a.loss_sum, b.loss_sum, 1e-6 * b.loss_sum);
  std::vector<float> sum = gradient_of(untied, "embedding.weight");
  const std::vector<float> head = gradient_of(untied, "head.weight");
  for (size_t i = 0; i < sum.size(); ++i) sum[i] += head[i];
  EXPECT_LE(distance(gradient_of(tied, "embedding.weight"), sum), 1e-5);
}

TEST_P(TrainingCurve, LossIsTheSmoothedCrossEntropyOfTheLogits) {
  decoder_of(options_).dropout = 0;
  options_.label_smoothing = 0.2;
  Engine engine(options_);
  engine.initialise(5);
  const StepBatch step = packed_steps(corpus_, 1, 8, 8)[0];
  const MicroBatch& batch = step.micro_batches[0];
  ForwardRun run(engine.parameters(), {.rows = {options_.capacity}},
                 [&](Tape& tape) { return as_decoder(engine.model()).logits(tape); });
  Ledger ledger;
  run.forward(batch, ledger);
  std::vector<float> logits;
  run.read(logits);

  const int64_t V = decoder_of(options_).vocab_size;
  double smoothed = 0, plain = 0;
  for (int64_t n = 0; n < batch.rows(); ++n) {
    const float* row = logits.data() + n * V;
    double sum = 0, mean = 0;
    for (int64_t v = 0; v < V; ++v) sum += std::exp(static_cast<double>(row[v]));
    for (int64_t v = 0; v < V; ++v) mean += (std::log(sum) - row[v]) / static_cast<double>(V);
    const double target = std::log(sum) - row[batch.sets[0].targets[static_cast<size_t>(n)]];
    smoothed += 0.8 * target + 0.2 * mean;
    plain += target;
  }
  EXPECT_NEAR(engine.train_step(step, 1, 0.0, ledger).loss_sum, smoothed, 1e-5 * smoothed);
  // Evaluation is without smoothing.
  const EvaluationResult result = engine.evaluate(*corpus_.sequences(), ledger, 8);
  EXPECT_EQ(result.tokens, batch.rows());
  EXPECT_NEAR(result.metrics.value("loss") * static_cast<double>(result.tokens), plain, 1e-5 * plain);
}

// A step whose result is not finite changes nothing, and the tensor at fault is named.
TEST_P(TrainingCurve, GoesOnUntouchedAfterAStepThatIsNotFinite) {
  for (const DType type : {DType::f32, DType::bf16}) {
    options_.compute_type = type;
    const std::vector<StepBatch> steps = packed_steps(corpus_, 4);
    const Curve clean = train_curve(options_, steps);
    Engine engine(options_);
    engine.initialise(options_.seed);
    Curve curve;
    train_on(engine, std::span(steps).first(2), curve);
    EXPECT_EQ(engine.first_not_finite(), "");

    ParameterStore& store = engine.parameters();
    const Tensor poisoned = store.find("layers.1.up.weight")->master;
    const std::vector<float> good = values_of(cpu_device(), poisoned);
    std::vector<float> bad = good;
    bad[17] = std::nanf("");
    put_values(cpu_device(), poisoned, bad);
    engine.parameters_changed();
    const auto state = [&] {
      std::vector<float> all;
      for (const Tensor& array : {store.flat_master(), store.flat_first_moment(), store.flat_second_moment()}) {
        const std::vector<float> values = values_of(cpu_device(), array);
        all.insert(all.end(), values.begin(), values.end());
      }
      return all;
    };
    const std::vector<float> before = state();
    Ledger ledger;
    const StepResult result = engine.train_step(steps[2], 3, 1e-2, ledger);
    EXPECT_FALSE(result.finite());
    EXPECT_EQ(engine.first_not_finite(), "layers.1.up.weight");
    const std::vector<float> after = state();
    EXPECT_EQ(std::memcmp(before.data(), after.data(), before.size() * sizeof(float)), 0);

    put_values(cpu_device(), poisoned, good);
    engine.parameters_changed();
    train_on(engine, std::span(steps).last(2), curve, 3);
    expect_same_bits(curve, clean);
  }
}

TEST_P(TrainingCurve, NamesAGradientWhenEveryParameterIsFinite) {
  decoder_of(options_).tie_embeddings = false;
  Engine engine(options_);
  engine.initialise(options_.seed);
  // The two factors make a gradient of the residual stream whose square is beyond fp32.
  for (const auto& [name, factor] : {std::pair{"final_norm.gain", 1e17f}, std::pair{"head.weight", 1e19f}}) {
    const Tensor tensor = engine.parameters().find(name)->master;
    std::vector<float> values = values_of(cpu_device(), tensor);
    for (float& value : values) value *= factor;
    put_values(cpu_device(), tensor, values);
  }
  engine.parameters_changed();
  const std::vector<float> before = values_of(cpu_device(), engine.parameters().flat_master());
  Ledger ledger;
  EXPECT_FALSE(engine.train_step(packed_steps(corpus_, 1)[0], 1, 1e-2, ledger).finite());
  EXPECT_EQ(first_not_finite(engine.parameters(), /*gradients=*/false), "");
  EXPECT_NE(engine.first_not_finite(), "");
  EXPECT_EQ(engine.first_not_finite(), first_not_finite(engine.parameters(), /*gradients=*/true));
  EXPECT_EQ(values_of(cpu_device(), engine.parameters().flat_master()), before);
}

// Memory.

TEST_P(TrainingCurve, TakesLessMemoryWhenActivationsAreRecomputed) {
  decoder_of(options_).num_layers = 8;
  const int64_t kept = plan_memory(options_).activation_bytes;
  options_.checkpoint_every = 1;
  const int64_t each = plan_memory(options_).activation_bytes;
  options_.checkpoint_every = 2;
  const int64_t pairs = plan_memory(options_).activation_bytes;
  EXPECT_LT(each, kept / 2);
  EXPECT_LT(pairs, kept);
}

TEST_P(TrainingCurve, TheNextBatchIsNotAskedForOnACpu) {
  Engine engine(options_);
  engine.initialise(options_.seed);
  Ledger ledger;
  const std::vector<StepBatch> steps = packed_steps(corpus_, 2, 8, 8);
  bool asked = false;
  engine.train_step(steps[0], 1, 1e-3, ledger, {}, [&] {
    asked = true;
    return &steps[1];
  });
  EXPECT_FALSE(asked);
}

class CountingDevice final : public Device {
 public:
  const char* name() const override { return "counting"; }
  void* allocate(int64_t bytes) override {
    ++allocations;
    live_bytes += bytes;
    return cpu_device().allocate(bytes);
  }
  void release(void* data, int64_t bytes) override {
    live_bytes -= bytes;
    cpu_device().release(data, bytes);
  }
  void copy_in(void* device, const void* host, int64_t bytes) override { cpu_device().copy_in(device, host, bytes); }
  void copy_out(void* host, const void* device, int64_t bytes) override { cpu_device().copy_out(host, device, bytes); }
  int64_t allocations = 0;
  int64_t live_bytes = 0;
};

TEST_P(TrainingCurve, AllocatesNothingOnceItRunsAndNoMoreThanPlanned) {
  CountingDevice device;
  options_.device = &device;
  Ledger ledger;
  {
    Engine engine(options_);
    engine.initialise(options_.seed);
    const std::vector<StepBatch> steps = packed_steps(corpus_, 6, 32, 8);
    Curve curve;
    train_on(engine, std::span(steps).first(1), curve);
    engine.evaluate(*corpus_.sequences(), ledger);
    const int64_t allocations = device.allocations;
    EXPECT_GT(allocations, 0);
    train_on(engine, std::span(steps).subspan(1), curve, 2);
    engine.evaluate(*corpus_.sequences(), ledger);
    EXPECT_EQ(device.allocations, allocations);
    // The plan counts parameters without their alignment and evaluation without its batch: 64 KiB covers both here.
    // Workspaces are the threads' own.
    const MemoryPlan plan = plan_memory(options_);
    EXPECT_LE(device.live_bytes, plan.total() - plan.workspace_bytes + (int64_t{64} << 10));
    EXPECT_GE(device.live_bytes, plan.total() - plan.workspace_bytes);
  }
  EXPECT_EQ(device.live_bytes, 0);
}

// The guarded device: memory that cannot be touched outside ops. What trains there needs no change for a GPU.

TEST_P(TrainingCurve, IsTheSameOnMemoryThatIsUnreadableOutsideOps) {
  for (const DType type : {DType::f32, DType::bf16}) {
    options_.compute_type = type;
    const std::vector<StepBatch> steps = packed_steps(corpus_, 3, 16, 8);
    const auto run = [&](Device& device, std::vector<TokenId>& text, EvaluationResult& quality) {
      options_.device = &device;
      Engine engine(options_);
      engine.initialise(options_.seed);
      Curve curve;
      train_on(engine, steps, curve);
      Ledger ledger;
      quality = engine.evaluate(*corpus_.sequences(), ledger);
      const LetterTokenizer tokenizer;
      Generator generator(as_decoder(engine.model()), engine.parameters(), tokenizer);
      text = generator.generate("abc", {.max_tokens = 40, .temperature = 0.9, .top_k = 20, .stop_at_end = false}).ids;
      return curve;
    };
    std::vector<TokenId> text, guarded_text;
    EvaluationResult quality, guarded_quality;
    const Curve plain = run(cpu_device(), text, quality);
    expect_same_bits(run(guarded_device(), guarded_text, guarded_quality), plain);
    EXPECT_EQ(guarded_quality.metrics.value("loss"), quality.metrics.value("loss"));
    EXPECT_EQ(guarded_quality.metrics.value("accuracy"), quality.metrics.value("accuracy"));
    EXPECT_EQ(guarded_text, text);
    EXPECT_EQ(text.size(), 43u);
  }
}

}  // namespace
}  // namespace brisk
