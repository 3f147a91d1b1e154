// What the caller's own code sees of a call: the lines its sink gets, the floating-point mode its callbacks run in, and
// the end of calls that it cancels.
#include <brisk/job.h>
#include <brisk/model.h>
#include <brisk/runtime.h>
#include <brisk/train.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/scratch_folder.h"

namespace brisk {
namespace {

bool flushes_subnormals() {
  volatile float smallest = std::numeric_limits<float>::min(), half = 0.5f;
  return smallest * half == 0.0f;
}

class Watching final : public LogSink {
 public:
  void line(LogLevel, std::string_view text) override {
    lines.emplace_back(text);
    see();
  }
  void progress(const Progress&, bool) override { see(); }
  void work(const WorkProgress&) override {
    see();
    if (on_work) on_work();
  }
  std::chrono::milliseconds work_interval() const override { return std::chrono::milliseconds(0); }
  void clear_progress() override { see(); }
  void finish_progress() override { see(); }

  std::vector<std::string> lines;
  std::function<void()> on_work;
  bool flushed = false;

 private:
  void see() { flushed = flushed || flushes_subnormals(); }
};

// A tiny language model or classifier, and the runtime and sink it is trained with.
class Callbacks : public ::testing::Test {
 protected:
  Callbacks() {
    std::string text, rows = "text,label\n";
    for (int i = 0; i < 300; ++i) {
      text += "the cat sat on mat " + std::to_string(i % 7) + " and the dog on the cat\n\n";
      rows += std::string(i % 2 == 0 ? "a fine film " : "a poor film ") + std::to_string(i) +
              (i % 2 == 0 ? ",1\n" : ",0\n");
    }
    folder_.write("text.txt", text);
    folder_.write("rows.csv", rows);
  }

  TrainingJob job(const std::string& task, const std::string& data, const std::vector<std::string>& more = {}) {
    std::vector<std::string> settings = {
        override_text("task", task), override_text("data.train", std::vector{folder_ / data}),
        override_text("data.validation", std::vector{folder_ / data}), override_text("output", folder_ / "run"),
        override_text("data.cache_dir", folder_ / "cache")};
    settings.insert(settings.end(), more.begin(), more.end());
    return TrainingJob::parse(runtime_, R"({
        "device": "cpu", "model": {"d_model": 16, "num_layers": 1, "num_heads": 2, "vocab_size": 300},
        "training": {"max_length": 24, "batch_size": 8, "max_steps": 3, "logging_steps": 1, "precision": "fp32"}})",
                              settings);
  }

  const test::ScratchFolder folder_;
  const std::shared_ptr<Watching> sink_ = std::make_shared<Watching>();
  Runtime runtime_{{.threads = 1, .log = sink_}};
};

TEST_F(Callbacks, ASinkGetsLinesWithoutColourCodesAndWithoutNewlinesAtTheirEnds) {
  train(runtime_, job("language_model", "text.txt", {"training.sample_tokens=4"}));
  bool sampled = false;
  for (const std::string& line : sink_->lines) {
    EXPECT_FALSE(line.ends_with('\n')) << line;
    EXPECT_FALSE(test::has(line, "\x1b")) << line;
    sampled = sampled || line.starts_with("sample: ");
  }
  EXPECT_TRUE(sampled);
}

#if defined(__SSE2__)
// On a thread of its own that has no runtime bound to it and does not flush subnormals, as in most programs: a thread begins
// in the mode of the one that starts it, here that of the tests.
template <typename Body>
void as_a_caller(const Body& body) {
  std::thread([&] {
    __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() & ~0x8040u);
    body();
  }).join();
}

TEST_F(Callbacks, OfATrainingRunInTheFloatingPointModeOfTheCaller) {
  as_a_caller([&] {
    int calls = 0;
    const auto see = [&] {
      ++calls;
      EXPECT_FALSE(flushes_subnormals());
    };
    train(runtime_, job("language_model", "text.txt"),
          {.before_first_step = see,
           .on_step = [&](const Progress&) { see(); },
           .on_evaluation = [&](const EvaluationMetrics&) { see(); }});
    EXPECT_EQ(calls, 5);
    LoadedModel model(runtime_, folder_ / "run");
    model.generate("the", {.max_tokens = 2, .stop_at_end = false}, [&](std::string_view) { see(); });
    EXPECT_EQ(calls, 7);
    EXPECT_FALSE(flushes_subnormals());
  });
  EXPECT_FALSE(sink_->flushed);
}

TEST_F(Callbacks, OfAClassifierRunInTheFloatingPointModeOfTheCaller) {
  as_a_caller([&] {
    train(runtime_, job("classify", "rows.csv"));
    LoadedModel model(runtime_, folder_ / "run");
    int calls = 0;
    model.predict({{"a fine film"}}, [&](std::span<const Prediction>) {
      ++calls;
      EXPECT_FALSE(flushes_subnormals());
    });
    bool done = false;
    model.predict_lines(
        [&](char* out, size_t) {
          EXPECT_FALSE(flushes_subnormals());
          *out = 'a';
          return std::exchange(done, true) ? 0 : 1;
        },
        [&](std::span<const Prediction>) { ++calls; });
    EXPECT_EQ(calls, 2);
  });
  EXPECT_FALSE(sink_->flushed);
}
#endif

TEST_F(Callbacks, OneThatCancelsWhileTheTextIsTokenizedEndsTheTrainingWithNothingBehind) {
  std::string text;  // of two waves
  while (text.size() < size_t{5} << 20) text += "the cat sat on the mat and the dog sat on the cat\n\n";
  folder_.write("long.txt", text);
  sink_->on_work = [&] { runtime_.cancel(); };
  EXPECT_THROW(train(runtime_, job("language_model", "long.txt")), Cancelled);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "run"));
}

TEST_F(Callbacks, ACancelledCallOfAModelThrows) {
  train(runtime_, job("language_model", "text.txt"));
  LoadedModel model(runtime_, folder_ / "run");
  int pieces = 0;
  EXPECT_THROW(model.generate("the", {.max_tokens = 100, .stop_at_end = false},
                              [&](std::string_view) {
                                if (++pieces == 3) runtime_.cancel();
                              }),
               Cancelled);
  EXPECT_EQ(pieces, 3);
  EXPECT_THROW(model.evaluate({folder_ / "text.txt"}), Cancelled);
}

TEST_F(Callbacks, ACancelledPredictionThrowsAfterTheAnswersItHas) {
  train(runtime_, job("classify", "rows.csv"));
  LoadedModel model(runtime_, folder_ / "run");
  const std::vector<TextOrPair> texts(600, {"a fine film"});
  size_t answers = 0;
  EXPECT_THROW(model.predict(texts,
                             [&](std::span<const Prediction> predictions) {
                               answers += predictions.size();
                               runtime_.cancel();
                             }),
               Cancelled);
  EXPECT_GT(answers, 0u);
  EXPECT_LT(answers, texts.size());
}

// An evaluation that is left is made up for by the run that resumes: its metrics are those of a run that went through, be it
// on the way or at the end of the run.
TEST_F(Callbacks, ATrainingThatIsCancelledBeforeAnEvaluationEvaluatesFirstWhenItIsResumed) {
  const std::vector<std::string> settings = {"training.eval_steps=2", "training.max_steps=4"};
  const auto into = [](std::vector<double>& losses) {
    return [&losses](const EvaluationMetrics& line) { losses.push_back(line.metrics.value("loss")); };
  };
  std::vector<double> whole;
  train(runtime_, job("language_model", "text.txt", settings), {.on_evaluation = into(whole)});
  ASSERT_EQ(whole.size(), 2u);
  for (const int64_t last_step : {2, 4}) {
    SCOPED_TRACE(last_step);
    std::filesystem::remove_all(folder_ / "run");
    std::vector<double> parts;
    {
      Runtime runtime({.threads = 1, .log = sink_});
      const TrainResult stopped = train(runtime, job("language_model", "text.txt", settings),
                                        {.on_step =
                                             [&](const Progress& progress) {
                                               if (progress.step == last_step) runtime.cancel();
                                             },
                                         .on_evaluation = into(parts)});
      EXPECT_TRUE(stopped.interrupted);
      EXPECT_EQ(std::ssize(parts), last_step / 2 - 1);
    }
    int64_t steps = 0;
    const TrainResult resumed =
        train(runtime_, job("language_model", "text.txt", settings),
              {.resume = true, .on_step = [&](const Progress&) { ++steps; }, .on_evaluation = into(parts)});
    EXPECT_EQ(resumed.ended, "finished");
    EXPECT_EQ(steps, 4 - last_step);
    EXPECT_EQ(parts, whole);
    // Once each in the file, too.
    const std::string lines = test::contents_of(folder_ / "run/metrics.jsonl");
    size_t evaluations = 0;
    for (size_t at = 0; (at = lines.find("\"validation_loss\"", at)) != std::string::npos; ++at) ++evaluations;
    EXPECT_EQ(evaluations, 2u);
    // Nothing is due any more.
    std::vector<double> more;
    train(runtime_, job("language_model", "text.txt", settings), {.resume = true, .on_evaluation = into(more)});
    EXPECT_TRUE(more.empty());
  }
}

// Samples that are being drawn do not hold a training that is cancelled.
TEST_F(Callbacks, ATrainingThatIsCancelledBeforeItsSamplesSavesWithoutThem) {
  const std::vector<std::string> settings = {"training.eval_steps=2", "training.max_steps=4",
                                             "training.sample_tokens=65536"};
  Runtime runtime({.threads = 1, .log = sink_});
  const TrainResult stopped = train(runtime, job("language_model", "text.txt", settings),
                                    {.on_evaluation = [&](const EvaluationMetrics&) { runtime.cancel(); }});
  EXPECT_TRUE(stopped.interrupted);
  EXPECT_TRUE(std::filesystem::exists(folder_ / "run/checkpoints/step-00000002/state.json"));
  const std::string samples = folder_ / "run/samples.jsonl";
  EXPECT_TRUE(!std::filesystem::exists(samples) || test::contents_of(samples).empty());
}

}  // namespace
}  // namespace brisk
