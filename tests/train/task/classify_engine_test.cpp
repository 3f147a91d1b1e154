// The engine with an encoder on it: labelled texts and masked ones go through the loop that language models go through.
#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"
#include "data/batch/loader.h"
#include "models/encoder.h"
#include "support/sanitized.h"
#include "support/tiny_job.h"
#include "train/engine/engine.h"
#include "train/task/classify_task.h"

namespace brisk {
namespace {

using testing::Threads;

// Texts of 3 to 20 tokens over ids 1 .. 40; the class is what the second token says. With weights where given.
class Labelled final : public Sequences {
 public:
  explicit Labelled(int64_t count, std::vector<float> weights = {}, int32_t taught = -1)
      : count_(count), weights_(std::move(weights)), taught_(taught) {}
  int64_t count() const override { return count_; }
  int64_t rows(int64_t index, int /*set*/ = 0) const override { return 3 + static_cast<int64_t>(17 * draw(index, 0)); }
  LengthTotals totals(int /*set*/ = 0) const override {
    LengthTotals totals;
    for (int64_t i = 0; i < count_; ++i) totals.add(rows(i));
    return totals;
  }
  int32_t label(int64_t index) const { return token(index, 1) % 3; }
  void append(int64_t index, int64_t /*epoch*/, int32_t sequence, MicroBatch& batch) const override {
    MicroBatch::Set &picked = batch.derived_set(1, 0), &set = batch.sets[0];
    const auto first = static_cast<int32_t>(set.tokens.size());
    for (int32_t p = 0; p < rows(index); ++p) {
      set.tokens.push_back(p == 0 ? 1 : token(index, p));
      set.position.push_back(p);
      set.sequence.push_back(sequence);
    }
    set.targets.resize(set.tokens.size(), -1);
    set.types.resize(set.tokens.size(), 0);
    set.end_sequence(set.tokens.size());
    picked.source.push_back(first);
    picked.position.push_back(0);
    picked.sequence.push_back(sequence);
    picked.targets.push_back(label(index));
    if (!weights_.empty()) picked.weights.push_back(weights_[static_cast<size_t>(label(index))]);
    for (int32_t c = 0; c < 3 && taught_ >= 0; ++c)  // a teacher, quite sure that the class is another one
      picked.soft_targets.push_back(c == (label(index) + taught_) % 3 ? 0.9f : 0.05f);
    picked.end_sequence(picked.source.size());
  }

 private:
  static double draw(int64_t index, uint64_t what) {
    return random_uniform(random_key({77, static_cast<uint64_t>(index)}), what);
  }
  static int32_t token(int64_t index, int32_t place) {
    return 1 + static_cast<int32_t>(40 * draw(index, 10 + static_cast<uint64_t>(place)));
  }
  int64_t count_;
  std::vector<float> weights_;
  int32_t taught_;  // >= 0: what a teacher says, as a distance from the label
};

EngineOptions classifier(double dropout) {
  EncoderConfig config;
  config.vocab_size = 41;
  config.d_model = 32;
  config.num_layers = 2;
  config.num_heads = 4;
  config.d_ff = 64;
  config.max_length = 20;
  config.types = 2;
  config.num_labels = 3;
  config.dropout = config.attention_dropout = config.classifier_dropout = dropout;
  EngineOptions options;
  options.make_evaluator = make_class_evaluator;
  options.model = config;
  options.layout = first_rows_layout(64);
  options.capacity = options.layout.capacity(512, 20);
  return options;
}

struct Course {
  std::vector<double> losses;
  EvaluationResult quality;
  std::vector<float> masters;
};

Course train(const EngineOptions& options, int64_t micro_batch_tokens, const std::vector<float>& weights, int64_t steps,
             int32_t taught = -1, double rate = 2e-3) {
  const Threads one(1);
  const auto train = std::make_shared<const Labelled>(640, weights, taught);
  Engine engine(options);
  engine.initialise(3);
  Loader loader(train, {.sequences_per_step = 32, .micro_batch_rows = {micro_batch_tokens}, .workers = 0});
  Ledger ledger;
  Course result;
  for (int64_t step = 1; step <= steps; ++step) {
    const StepResult done = engine.train_step(loader.next(), step, rate, ledger);
    EXPECT_TRUE(done.updated);
    EXPECT_EQ(done.targets, 32);
    EXPECT_GT(done.tokens, 32 * 3);
    result.losses.push_back(done.loss());
  }
  result.quality = engine.evaluate(Labelled(100), ledger);
  result.masters = testing::values_of(engine.parameters().device(), engine.parameters().flat_master());
  return result;
}

// Long enough to know the classes: 150 steps are.
Course learn(const EngineOptions& options, int32_t taught = -1) { return train(options, 512, {}, 200, taught, 4e-3); }

TEST(EngineOfAClassifier, LearnsWhatTheClassHangsOn) {
  const Course trained = learn(classifier(0));
  EXPECT_GT(trained.quality.metrics.value("accuracy"), 0.9);
  ASSERT_TRUE(trained.quality.classes.has_value());
  EXPECT_EQ(trained.quality.classes->count(), 100);
  EXPECT_DOUBLE_EQ(trained.quality.classes->accuracy(), trained.quality.metrics.value("accuracy"));
}

TEST(EngineOfAClassifier, HasTheSameGradientsHoweverAStepIsDivided) {
  const std::vector<float> weights = {0.5f, 1, 3};
  const Course whole = train(classifier(0.1), 512, weights, 5), divided = train(classifier(0.1), 64, weights, 5);
  for (size_t i = 0; i < whole.losses.size(); ++i) EXPECT_NEAR(whole.losses[i], divided.losses[i], 2e-5) << i;
  EXPECT_LT(testing::distance(divided.masters, whole.masters), 1e-4);
}

TEST(EngineOfAClassifier, IsTheSameOnAGpu) {
  std::string why;
  if (cuda_gpus(&why).empty()) GTEST_SKIP() << "no NVIDIA GPU to run this on: " << why;
  const std::vector<float> weights = {0.5f, 1, 3};
  for (const int64_t micro_batch_tokens : {512, 64}) {
    EngineOptions options = classifier(0.1);
    const Course cpu = train(options, micro_batch_tokens, weights, 60);
    options.device = &cuda_device();
    const Course gpu = train(options, micro_batch_tokens, weights, 60),
                 again = train(options, micro_batch_tokens, weights, 60);
    for (size_t i = 0; i < cpu.losses.size(); ++i) {
      EXPECT_NEAR(gpu.losses[i], cpu.losses[i], i == 0 ? 1e-5 : 1e-3 * (1 + cpu.losses[i])) << "step " << i + 1;
    }
    EXPECT_EQ(gpu.losses, again.losses);
    EXPECT_EQ(gpu.masters, again.masters);
    EXPECT_NEAR(gpu.quality.metrics.value("loss"), cpu.quality.metrics.value("loss"), 1e-2);
  }
}

TEST(EngineOfAClassifier, WeighsTheLossOfAClass) {
  // Weights that are all the same change nothing: the loss is divided by their sum.
  const Course plain = train(classifier(0), 512, {}, 3), same = train(classifier(0), 512, {4, 4, 4}, 3),
               other = train(classifier(0), 512, {1, 1, 9}, 3);
  for (size_t i = 0; i < plain.losses.size(); ++i) EXPECT_NEAR(plain.losses[i], same.losses[i], 1e-5);
  EXPECT_GT(testing::distance(other.masters, plain.masters), 1e-3);
}

TEST(EngineOfAClassifier, FollowsItsTeacherAsFarAsTheWeightSays) {
  EngineOptions options = classifier(0);
  options.distillation = {.weight = 0.95, .temperature = 2};
  const Course follower = learn(options, 1);  // the teacher is wrong about everything
  EXPECT_LT(follower.quality.metrics.value("accuracy"), 0.1);
  if (testing::kSanitized) return;
  options.distillation.weight = 0.05;
  const Course sceptic = learn(options, 1);
  EXPECT_GT(sceptic.quality.metrics.value("accuracy"), 0.9);
}

TEST(EngineOfAClassifier, HasTheSameGradientsOfATeacherHoweverAStepIsDivided) {
  EngineOptions options = classifier(0.1);
  options.distillation = {.weight = 0.5, .temperature = 2};
  const std::vector<float> weights = {0.5f, 1, 3};
  const Course whole = train(options, 512, weights, 5, 1), divided = train(options, 64, weights, 5, 1);
  for (size_t i = 0; i < whole.losses.size(); ++i) EXPECT_NEAR(whole.losses[i], divided.losses[i], 2e-5) << i;
  EXPECT_LT(testing::distance(divided.masters, whole.masters), 1e-4);
}

TEST(EngineOfAClassifier, EvaluatesTheSameInMicroBatchesOfAnySize) {
  const Threads one(1);
  const EngineOptions options = classifier(0.1);
  Engine engine(options);
  engine.initialise(3);
  Ledger ledger;
  const EvaluationResult large = engine.evaluate(Labelled(100), ledger);
  const auto small = make_class_evaluator({.model = engine.model(),
                                           .store = engine.parameters(),
                                           .capacity = options.layout.capacity(20, 20),
                                           .layout = options.layout});
  const EvaluationResult result = small->evaluate(Labelled(100), ledger);
  EXPECT_NEAR(large.metrics.value("loss"), result.metrics.value("loss"), 1e-6);
  EXPECT_EQ(large.tokens, result.tokens);
  EXPECT_EQ(engine.evaluate(Labelled(100), ledger, 10).targets, 10);
}

TEST(EngineOfAClassifier, SaysItsLossAsTrainingDoes) {
  const Threads one(1);
  const EngineOptions options = classifier(0);
  Engine engine(options);
  engine.initialise(3);
  Ledger ledger;
  const EvaluationResult quality = engine.evaluate(Labelled(32), ledger);
  Loader loader(std::make_shared<const Labelled>(32),
                {.sequences_per_step = 32, .micro_batch_rows = {512}, .workers = 0});
  const StepResult step = engine.train_step(loader.next(), 1, 0, ledger);
  EXPECT_NEAR(step.loss(), quality.metrics.value("loss"), 1e-5);
  EXPECT_EQ(step.correct, quality.classes->correct());
}

}  // namespace
}  // namespace brisk
