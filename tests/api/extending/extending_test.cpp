// docs/extending.md is true: an architecture in one file and a task in one file, each with a line in its table, are trained by
// a job file, resumed, opened again, evaluated and asked, and nothing else in brisk knows them.
#include <brisk/job.h>
#include <brisk/model.h>
#include <brisk/runtime.h>
#include <brisk/train.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files/files.h"
#include "infer/answer/generate.h"
#include "infer/architecture/architecture.h"
#include "models/model_costs.h"
#include "support/scratch_folder.h"
#include "support/silent_log.h"
#include "support/tiny_job.h"

namespace brisk {
namespace {

using namespace brisk::testing;

Job looped_job() {
  Job job;
  job.model.type = "looped";
  job.model.vocab_size = 61;
  job.model.d_model = 32;
  job.model.num_heads = 2;
  job.model.num_layers = 3;
  job.model.context = 24;
  return job;
}

EngineOptions looped_options() {
  EngineOptions options;
  options.model = architecture_of(looped_job().model).training_config(looped_job());
  options.capacity = {1024, 128, 24};
  options.muon = MuonOptions{};
  return options;
}

TEST(AToyArchitecture, LearnsThroughTheEngineAndGenerates) {
  const Threads one(1);
  Engine engine(looped_options());
  engine.initialise(3);
  const Corpus corpus = tiny_corpus();
  const std::vector<StepBatch> steps = packed_steps(corpus, 4);
  Curve curve;
  for (int64_t epoch = 0; epoch < 6; ++epoch) train_on(engine, steps, curve, 1 + 4 * epoch, 1e-2);
  EXPECT_LT(curve.losses.back(), 0.75 * curve.losses.front());

  const CausalModel* model = engine.model().causal();
  ASSERT_NE(model, nullptr);
  const LetterTokenizer tokenizer;
  Generator generator(*model, engine.parameters(), tokenizer);
  const Generated text = generator.generate("AB", {.max_tokens = 40, .temperature = 0, .stop_at_end = false});
  EXPECT_EQ(text.new_tokens, 40);  // beyond its length: the cache goes on from the second half
}

TEST(AToyArchitecture, LearnsTheSameWithCheckpointingAndInSmallerMicroBatches) {
  const Threads one(1);
  const Corpus corpus = tiny_corpus();
  const Curve whole = train_curve(looped_options(), packed_steps(corpus, 4));
  EngineOptions options = looped_options();
  options.checkpoint_every = 2;
  expect_same_curve(train_curve(options, packed_steps(corpus, 4, 32, 8)), whole, 1e-4);
}

TEST(AToyArchitecture, IsCountedByTheOpsItRecords) {
  ParameterStore store;
  const ModelConfig config = architecture_of(looped_job().model).training_config(looped_job());
  const auto model = make_model(config, store);
  std::map<std::string, ComponentCost> costs;
  int64_t listed = 0;
  for (const ComponentCost& cost : model_costs(config, std::vector<RowMeans>{{24, 24}})) {
    listed += cost.parameters;
    costs[cost.component] = cost;
  }
  EXPECT_EQ(listed, store.count());
  const double D = 32, V = 61, loops = 3;
  EXPECT_EQ(costs.at("block.qkv").flop_per_token, loops * 6 * 3 * D * D);
  EXPECT_EQ(costs.at("attention").flop_per_token, loops * 6 * 24 * D);
  EXPECT_EQ(costs.at("head (the embedding)").flop_per_token, 6 * V * D);
}

TEST(AToyArchitecture, SaysWhereItCannotBeExported) {
  EXPECT_TRUE(test::has(
      test::message_of<UserError>([] { architecture_of(looped_job().model).check_huggingface(looped_job().model); }),
      "looped"));
}

// A job file of a toy task that trains a toy architecture.
class AJobFile : public ::testing::Test {
 protected:
  AJobFile() {
    std::string all, some;
    const std::string letters = "abcd";
    for (const char first : letters) {
      for (const char second : letters) {
        const std::string line = fmt::format("{0}{1}={1}{0}\n", first, second);
        for (int i = 0; i < 4; ++i) all += line;
        if (first == 'a') some += line;
      }
    }
    const nlohmann::json job = {
        {"task", "riddles"},
        {"device", "cpu"},
        {"output", folder_ / "run"},
        {"model", {{"type", "looped"}, {"d_model", 32}, {"num_layers", 2}, {"num_heads", 2}, {"vocab_size", 512}}},
        {"training",
         {{"max_length", 16},
          {"batch_size", 32},
          {"max_steps", kSteps},
          {"eval_steps", kSteps / 2},
          {"learning_rate", 0.01},
          {"best_by", "solved"},
          {"precision", "fp32"}}},
        {"data",
         {{"train", folder_.write("riddles.txt", all)},
          {"validation", folder_.write("some.txt", some)},
          {"cache_dir", folder_ / "cache"}}}};
    folder_.write("job.json", job.dump());
  }

  TrainResult train_to(int64_t last_step, bool resume) {
    Runtime runtime({.threads = 1, .log = std::make_shared<test::SilentLog>()});
    return train(runtime, TrainingJob::load(runtime, folder_ / "job.json"),
                 {.resume = resume, .on_step = [&](const Progress& progress) {
                    if (progress.step == last_step) runtime.cancel();
                  }});
  }

  static constexpr int64_t kSteps = 200;
  const test::ScratchFolder folder_;
};

TEST_F(AJobFile, NamesAToyTaskAndAToyArchitectureAndTheyTrainResumeEvaluateAndAnswer) {
  EXPECT_TRUE(train_to(60, false).interrupted);
  const TrainResult result = train_to(-1, true);
  EXPECT_EQ(result.ended, "finished");
  ASSERT_TRUE(result.best_evaluation.has_value());
  const double solved = result.best_evaluation->metrics.value("solved");
  EXPECT_GE(solved, 0.75);
  EXPECT_EQ(nlohmann::json::parse(test::contents_of(folder_ / "run/job.json"))["model"]["vocab_size"], 257)
      << "what the data decided";

  Runtime runtime({.threads = 1, .log = std::make_shared<test::SilentLog>()});
  LoadedModel model(runtime, folder_ / "run");
  EXPECT_EQ(model.task(), "riddles");
  const Evaluation evaluation = model.evaluate({folder_ / "some.txt"});
  EXPECT_EQ(evaluation.metrics.value("solved"), solved);
  EXPECT_EQ(evaluation.target_name, "letters");
  EXPECT_EQ(evaluation.targets, 4 * 3) << "two letters and the end";
  int right = 0;
  for (const char letter : std::string("abcd")) {
    const std::string question = fmt::format("a{}=", letter);
    right +=
        model.generate(question, {.max_tokens = 4, .temperature = 0}).text == fmt::format("{}{}a", question, letter);
  }
  EXPECT_EQ(right, 4 * solved);
  EXPECT_TRUE(test::has(test::message_of<UserError>([&] { model.write(folder_ / "folder", ModelFormat::huggingface); }),
                        "looped"));
  const std::string no_gguf =
      test::message_of<UserError>([&] { model.write(folder_ / "model.gguf", ModelFormat::gguf); });
  EXPECT_TRUE(test::has(no_gguf, "no other format for a looped")) << "no advice that is refused, too: " << no_gguf;
}

TEST_F(AJobFile, IsRefusedWithAnOptionThatTheArchitectureDoesNotRead) {
  Runtime runtime({.threads = 1, .log = std::make_shared<test::SilentLog>()});
  const auto complaint = [&](const std::string& setting) {
    return test::message_of<UserError>(
        [&] { train(runtime, TrainingJob::load(runtime, folder_ / "job.json", {setting})); });
  };
  for (const char* setting : {"dropout=0.5", "d_ff=64", "activation=relu", "norm=rmsnorm", "positions=none",
                              "tie_embeddings=false", "num_kv_heads=1", "norm_epsilon=1e-3", "bias=false"}) {
    const std::string name = setting;
    EXPECT_TRUE(test::has(complaint("model." + name), "model." + name.substr(0, name.find('='))) &&
                test::has(complaint("model." + name), "does not apply to model.type looped"))
        << setting << ": " << complaint("model." + name);
  }
  EXPECT_FALSE(test::has(complaint("model.d_ff=128"), "does not apply"))
      << "what it is anyway: " << complaint("model.d_ff=128");
}

TEST_F(AJobFile, WithHeadsThatCannotBeTurnedIsRefusedBeforeAnythingIsWritten) {
  Runtime runtime({.threads = 1, .log = std::make_shared<test::SilentLog>()});
  const std::string message = test::message_of<UserError>([&] {
    train(runtime, TrainingJob::load(runtime, folder_ / "job.json", {"model.d_model=30", "model.num_heads=2"}));
  });
  EXPECT_TRUE(test::has(message, "the width of a head must be even, and it is 15")) << message;
  EXPECT_FALSE(file_exists(folder_ / "run/job.json"));
}

TEST_F(AJobFile, IsNotResumedOnOtherData) {
  EXPECT_TRUE(train_to(20, false).interrupted);
  folder_.write("riddles.txt", "ab=ba\nba=ab\n");
  const std::string message = test::message_of<UserError>([&] { train_to(-1, true); });
  EXPECT_TRUE(test::has(message, "is not what the run was started with")) << message;
}

TEST_F(AJobFile, ThatIsWrongIsToldWhatTheTablesHave) {
  Runtime runtime({.threads = 1, .log = std::make_shared<test::SilentLog>()});
  const auto complaint = [&](const std::string& setting) {
    return test::message_of<UserError>(
        [&] { train(runtime, TrainingJob::load(runtime, folder_ / "job.json", {setting})); });
  };
  EXPECT_TRUE(test::has(complaint("model.type=lopped"), "looped")) << complaint("model.type=lopped");
  EXPECT_TRUE(test::has(complaint("task=ridles"), "riddles")) << complaint("task=ridles");
  EXPECT_TRUE(test::has(complaint("task=classify"), "use bert, distilbert, roberta")) << complaint("task=classify");
}

}  // namespace
}  // namespace brisk
