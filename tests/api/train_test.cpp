// Trainings through the interface of the library.
#include <brisk/job.h>
#include <brisk/model.h>
#include <brisk/runtime.h>
#include <brisk/train.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "support/scratch_folder.h"
#include "support/silent_log.h"

namespace brisk {
namespace {

RuntimeOptions silent(int threads) { return {.threads = threads, .log = std::make_shared<test::SilentLog>()}; }

// A folder with a text, and trainings on it.
class Trainings : public ::testing::Test {
 protected:
  Trainings() {
    std::string text;
    for (int i = 0; i < 400; ++i) text += "the cat sat on mat " + std::to_string(i % 7) + " and the dog on the cat\n\n";
    folder_.write("text.txt", text);
  }

  TrainingJob job(Runtime& runtime, const std::string& run, int seed, int steps = 12,
                  const std::vector<std::string>& more_settings = {}) const {
    std::vector<std::string> settings = {override_text("data.train", std::vector{folder_ / "text.txt"}),
                                         override_text("data.validation", std::vector{folder_ / "text.txt"}),
                                         override_text("output", folder_ / run),
                                         override_text("data.cache_dir", folder_ / ("cache-" + run)),
                                         "training.max_steps=" + std::to_string(steps),
                                         "training.seed=" + std::to_string(seed)};
    settings.insert(settings.end(), more_settings.begin(), more_settings.end());
    return TrainingJob::parse(
        runtime,
        R"({"device": "cpu", "model": {"d_model": 32, "num_layers": 1, "num_heads": 2, "vocab_size": 300, "dropout": 0.1},
                     "training": {"max_length": 32, "batch_size": 4, "logging_steps": 1}})",
        settings);
  }

  std::vector<double> losses(const std::string& run, int seed, int threads) const {
    std::vector<double> all;
    Runtime runtime(silent(threads));
    train(runtime, job(runtime, run, seed),
          {.on_step = [&](const Progress& progress) { all.push_back(progress.loss); }});
    return all;
  }

  test::ScratchFolder folder_;
};

TEST_F(Trainings, ATrainingTellsItsStepsAndEvaluationsAndItsModelGenerates) {
  Runtime runtime(silent(2));
  std::vector<int64_t> steps;
  std::vector<EvaluationMetrics> evaluations;
  const TrainResult result =
      train(runtime, job(runtime, "run", 1),
            {.on_step = [&](const Progress& progress) { steps.push_back(progress.step); },
             .on_evaluation = [&](const EvaluationMetrics& metrics) { evaluations.push_back(metrics); }});
  EXPECT_EQ(result.ended, "finished");
  EXPECT_EQ(result.last_step, 12);
  ASSERT_EQ(steps.size(), 12u);
  EXPECT_EQ(steps.front(), 1);
  ASSERT_EQ(evaluations.size(), 1u);
  EXPECT_EQ(evaluations[0].metrics.value("loss"), result.best_evaluation->metrics.value("loss"));

  LoadedModel model(runtime, result.run_path);
  EXPECT_EQ(model.task(), "language_model");
  const Generated generated = model.generate("the ", {.max_tokens = 5, .temperature = 0});
  EXPECT_EQ(generated.new_tokens, 5);
  EXPECT_EQ(model.generate("the ", {.max_tokens = 5, .temperature = 0}).text, generated.text);
  const Evaluation evaluation = model.evaluate({folder_ / "text.txt"});
  EXPECT_EQ(evaluation.targets, evaluation.tokens);
  EXPECT_LT(evaluation.metrics.value("loss"), 6);
  EXPECT_EQ(model.write(folder_ / "gpt2", ModelFormat::huggingface), "AutoModelForCausalLM");
  EXPECT_THROW(model.predict({{"the cat"}}, [](std::span<const Prediction>) {}), UserError);
}

TEST_F(Trainings, TwoAtOnceGiveTheBitsTheyGiveAlone) {
  const std::vector<double> first = losses("first", 1, 1), second = losses("second", 2, 2);
  std::vector<double> beside;
  std::thread other([&] { beside = losses("first-beside", 1, 1); });
  const std::vector<double> again = losses("second-beside", 2, 2);
  other.join();
  EXPECT_EQ(beside, first);
  EXPECT_EQ(again, second);
  EXPECT_NE(first, second);
}

TEST_F(Trainings, OneThatAnotherThreadCancelsIsResumedToTheSameLosses) {
  const std::vector<double> whole = losses("whole", 3, 2);
  std::vector<double> parts;
  const auto remember = [&](const Progress& progress) { parts.push_back(progress.loss); };
  {
    Runtime runtime(silent(2));
    const TrainResult result = train(runtime, job(runtime, "parts", 3), {.on_step = [&](const Progress& progress) {
                                       remember(progress);
                                       if (progress.step == 5) std::thread([&] { runtime.cancel(); }).join();
                                     }});
    EXPECT_TRUE(result.interrupted);
    EXPECT_EQ(parts.size(), 5u);
  }
  Runtime runtime(silent(2));
  const TrainResult result = train(runtime, job(runtime, "parts", 3), {.resume = true, .on_step = remember});
  EXPECT_FALSE(result.interrupted);
  EXPECT_EQ(parts, whole);
}

TEST_F(Trainings, ComputesWithTheThreadsOfTheRuntimeUnlessTheJobHasItsOwn) {
  Runtime runtime(silent(3));
  int in_training = 0;
  const TrainOptions options{.on_step = [&](const Progress&) { in_training = runtime.threads(); }};
  train(runtime, job(runtime, "of-runtime", 1, 1), options);
  EXPECT_EQ(in_training, 3);
  train(runtime, job(runtime, "of-job", 1, 1, {"training.threads=1"}), options);
  EXPECT_EQ(in_training, 1);
  EXPECT_EQ(runtime.threads(), 3) << "after the training";
}

TEST_F(Trainings, AJobThatIsWrongSaysWhatToMend) {
  Runtime runtime(silent(1));
  const std::string message =
      test::message_of<UserError>([&] { TrainingJob::parse(runtime, R"({"model": {"d_modl": 32}})"); });
  EXPECT_TRUE(test::has(message, "did you mean model.d_model?")) << message;
}

}  // namespace
}  // namespace brisk
