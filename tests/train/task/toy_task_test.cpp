// A task in one file: its data, which rows have targets, and a metric of its own. It trains, is judged by its metric
// and is evaluated on other data without anything else in brisk knowing it. With a line in the table of tasks and a row
// of traits, a job could name it.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "base/error.h"
#include "infer/generate.h"
#include "job/job_conditions.h"
#include "support/scratch_folder.h"
#include "support/tiny_job.h"
#include "train/run/engine_plan.h"
#include "train/run/trainer.h"
#include "train/task/evaluate.h"
#include "train/task/task.h"

namespace brisk {
namespace {

using test::contents_of;
using test::ScratchFolder;

// Lines such as "ab=ba": what stands after the sign is to be answered.
class Riddles final : public Sequences {
 public:
  Riddles(const std::string& text, const Tokenizer& tokenizer) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      const TokenId end = tokenizer.end_of_document().value();
      std::vector<TokenId>& ids = ids_.emplace_back(1, end);  // a text begins where another one ended
      tokenizer.encode(line, ids);
      ids.push_back(end);
      const size_t sign = line.find('=') + 1;
      questions.push_back(line.substr(0, sign));
      answers.push_back(line.substr(sign));
      totals_.add(std::ssize(ids) - 1);
    }
  }
  int64_t count() const override { return std::ssize(ids_); }
  int64_t rows(int64_t index, int /*set*/ = 0) const override {
    return std::ssize(ids_[static_cast<size_t>(index)]) - 1;
  }
  LengthTotals totals(int /*set*/ = 0) const override { return totals_; }
  void append(int64_t index, int64_t /*epoch*/, int32_t sequence, MicroBatch& batch) const override {
    const std::vector<TokenId>& ids = ids_[static_cast<size_t>(index)];
    const size_t asked = questions[static_cast<size_t>(index)].size();
    MicroBatch::Set& rows = batch.sets[0];
    for (size_t i = 0; i + 1 < ids.size(); ++i) {
      rows.tokens.push_back(ids[i]);
      rows.targets.push_back(i < asked ? -1 : ids[i + 1]);
      rows.position.push_back(static_cast<int32_t>(i));
      rows.sequence.push_back(sequence);
    }
    rows.end_sequence(rows.tokens.size());
  }

  std::vector<std::string> questions, answers;

 private:
  std::vector<std::vector<TokenId>> ids_;
  LengthTotals totals_;
};

class RiddleTask final : public Task {
 public:
  TaskData prepare(const Job& job, DataRequest /*request*/) override {
    const std::string text = contents_of(job.data.train.front().path);
    TaskData data;
    const std::vector<std::string_view> texts = {text};
    data.tokenizer = train_bpe(texts, {.vocab_size = 257}).tokenizer;  // bytes
    data.train = std::make_shared<Riddles>(text, *data.tokenizer);
    data.validation = std::make_shared<Riddles>(contents_of(job.data.validation.front()), *data.tokenizer);
    data.sequences_per_epoch = data.train->count();
    data.rows_per_epoch = static_cast<double>(data.train->total_rows());
    data.found["model.vocab_size"] = data.tokenizer->vocab_size();
    return data;
  }
  Description describe_data(const Job&, const TaskData& data, const PackingFigures&) const override {
    return {fmt::format("{} riddles", data.train->count()), "{}"};
  }
  Metrics metrics() const override {
    Metrics metrics = token_metrics();
    metrics.add(solved(Metric::kNone));
    return metrics;
  }
  // By asking.
  void add_metrics(const Model& model, const ParameterStore& store, const Tokenizer& tokenizer,
                   const Sequences& sequences, Metrics& metrics) const override {
    const auto& riddles = dynamic_cast<const Riddles&>(sequences);
    Generator generator(*model.causal(), store, tokenizer);
    double right = 0;
    for (size_t i = 0; i < riddles.questions.size(); ++i) {
      const std::string text = generator.generate(riddles.questions[i], {.max_tokens = 4, .temperature = 0}).text;
      right += text == riddles.questions[i] + riddles.answers[i] ? 1 : 0;
    }
    metrics.add(solved(right / static_cast<double>(riddles.questions.size())));
  }
  EvaluationData open_evaluation(const TrainedModel& model, const std::vector<std::string>& paths,
                                 int64_t /*max_length*/) const override {
    return {.sequences = std::make_shared<Riddles>(contents_of(paths.front()), *model.tokenizer),
            .layout = {},
            .notes = {}};
  }

 private:
  static Metric solved(double share) {
    return {.name = "solved", .value = share, .higher_is_better = true, .format = MetricFormat::percent};
  }
};

Job riddle_job(const ScratchFolder& folder) {
  std::string all, some;
  const std::string letters = "abcd";
  for (const char first : letters) {
    for (const char second : letters) {
      const std::string line = fmt::format("{0}{1}={1}{0}\n", first, second);
      for (int i = 0; i < 4; ++i) all += line;
      if (first == 'a') some += line;
    }
  }
  Job job = job_from_json_text(
      R"({"model": {"d_model": 32, "num_layers": 2, "num_heads": 2, "vocab_size": 512},
          "training": {"max_length": 16, "batch_size": 32, "max_steps": 160, "eval_steps": 80, "learning_rate": 0.01,
                       "best_by": "solved", "threads": 1, "precision": "fp32"}})",
      "job");
  job.output = folder / "run";
  job.data.train = {folder.write("riddles.txt", all)};
  job.data.validation = {folder.write("some.txt", some)};
  job.data.cache_dir = folder / "cache";
  resolve_defaults(job);
  return job;
}

TEST(AToyTask, TrainsAndIsJudgedByItsOwnMetric) {
  const ScratchFolder folder;
  const Job job = riddle_job(folder);
  const auto task = std::make_shared<RiddleTask>();
  const TrainOutcome outcome = train(job, {.task = task});
  ASSERT_TRUE(outcome.summary.best_evaluation.has_value());
  const double solved = outcome.summary.best_evaluation->metrics.value("solved");
  EXPECT_GE(solved, 0.75);
  EXPECT_EQ(job.model.vocab_size, 512) << "the caller's job is as it was";
  EXPECT_EQ(nlohmann::json::parse(contents_of(folder / "run/job.json"))["model"]["vocab_size"], 257)
      << "and the run's has what the data decided";

  const auto model = open_trained_model(folder / "run", "");
  const TaskEvaluation evaluation = evaluate(*task, *model, {folder / "some.txt"});
  EXPECT_EQ(evaluation.result.metrics.value("solved"), solved);
  EXPECT_EQ(evaluation.result.targets, 4 * 3) << "two letters and the end";
}

TEST(TheTableOfTasks, HasEveryTaskThatAJobMayName) {
  std::set<std::string_view> made, named;
  for (const TaskEntry& entry : tasks()) {
    EXPECT_TRUE(made.insert(entry.name).second) << entry.name;
    EXPECT_FALSE(make_task(entry.name)->metrics().empty()) << entry.name;
  }
  for (const TaskTraits& traits : all_tasks()) named.insert(traits.name);
  EXPECT_EQ(made, named);
}

TEST(ATask, PlansItsMicroBatchesBeforeItHasData) {
  for (const TaskEntry& entry : tasks()) {
    Job job = job_from_json_text(fmt::format(R"({{"task": "{}"}})", entry.name), "job");
    resolve_defaults(job);
    const std::unique_ptr<Task> task = make_task(entry.name);
    const EngineOptions options = plan_engine(*task, job, cpu_device(), {{.longest = 128, .mean = 128}}).options;
    EXPECT_GT(plan_memory(options).total(), 0) << entry.name;
    for (const RowCapacity& rows : options.row_sets()) EXPECT_LE(rows.rows, options.capacity.rows) << entry.name;
  }
}

TEST(ATeacher, DecidesForTheCpuBeforeADeviceIsChosen) {
  Job job = job_from_json_text(R"({"task": "classify", "training": {"teacher": "runs/big"}})", "job");
  const std::unique_ptr<Task> task = make_task(job.task);
  EXPECT_EQ(training_device(*task, job).device, &cpu_device());
  EXPECT_EQ(job.device, "auto");
  job.device = "cuda";
  EXPECT_EQ(test::message_of<UserError>([&] { training_device(*task, job); }),
            "device \"cuda\": a GPU cannot learn from training.teacher yet; use \"cpu\"");
}

}  // namespace
}  // namespace brisk
