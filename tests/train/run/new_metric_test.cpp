// A metric that a task adds is in all that a run leaves and in all that reads it, none of which knows its name.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "report/page/compare.h"
#include "report/page/report_page.h"
#include "report/read/run_record.h"
#include "support/scratch_folder.h"
#include "train/record/run_text.h"
#include "train/run/best_model.h"
#include "train/run/run_watch.h"
#include "train/run/setup.h"

namespace brisk {
namespace {

using nlohmann::json;
using test::contents_of;
using test::ScratchFolder;

Metric bleu(double value = Metric::kNone) {
  return {.name = "bleu", .value = value, .higher_is_better = true, .format = MetricFormat::percent, .label = "BLEU"};
}

// Another task, which is also judged by BLEU.
class BleuTask final : public Task {
 public:
  explicit BleuTask(std::shared_ptr<Task> task) : task_(std::move(task)) {}
  TaskData prepare(const Job& job, DataRequest request) override { return task_->prepare(job, std::move(request)); }
  ModelConfig model_config(const Job& job) const override { return task_->model_config(job); }
  Description describe_data(const Job& job, const TaskData& data, const PackingFigures& packing) const override {
    return task_->describe_data(job, data, packing);
  }
  std::string describe_model(const Job& job) const override { return task_->describe_model(job); }
  Metrics metrics() const override {
    Metrics metrics = task_->metrics();
    metrics.add(bleu());
    return metrics;
  }
  EvaluationData open_evaluation(const TrainedModel& model, const EvaluationRequest& request) const override {
    return task_->open_evaluation(model, request);
  }

 private:
  std::shared_ptr<Task> task_;
};

Job tiny_text_job(const ScratchFolder& folder) {
  std::string text;
  for (int i = 0; i < 200; ++i) text += "line " + std::to_string(i * 7919 % 1000) + " of a text\n";
  test::put_contents(folder / "text.txt", text);
  Job job = job_from_json_text(
      R"({"model": {"d_model": 16, "num_layers": 1, "num_heads": 1, "vocab_size": 280},
          "training": {"max_length": 16, "batch_size": 4, "max_steps": 50, "threads": 1, "precision": "fp32"}})",
      "job");
  job.output = folder / "run";
  job.data.train = {folder / "text.txt"};
  job.data.cache_dir = folder / "cache";
  resolve_defaults(job);
  return job;
}

TEST(ANewMetric, FlowsFromTheEvaluationToEverythingThatShowsIt) {
  const ScratchFolder folder;
  Job job = tiny_text_job(folder);
  job.training.best_by = "bleu";
  TrainingSetup setup(job, {.task = std::make_shared<BleuTask>(make_task(job))});
  RunWatch watch(setup.plan(), setup.run, setup.resources);
  BestModel best(setup.plan(), setup.run);
  const auto evaluate = [&](int64_t step, double loss, double value) {
    setup.run.state.step = step;
    Metrics metrics = token_metrics(loss, 0.5);
    metrics.add(bleu(value));
    const EvaluationMetrics line{step, 1, metrics, static_cast<double>(step)};
    setup.resources.metrics->append(line);
    watch.evaluation(line);
    return best.see(line);
  };
  EXPECT_TRUE(evaluate(10, 3.0, 0.20));
  EXPECT_TRUE(evaluate(20, 3.5, 0.25)) << "a higher loss, but also a higher BLEU";
  EXPECT_FALSE(evaluate(30, 2.5, 0.22));
  watch.end("finished");

  // The best model, early stopping, and what a checkpoint keeps of it.
  EXPECT_EQ(setup.run.state.best_step, 20);
  EXPECT_EQ(setup.run.state.best_metrics.value("bleu"), 0.25);
  EXPECT_EQ(best.early_stopping_text(),
            "early stopping at step 30: no better validation BLEU in 1 evaluation; the best was validation BLEU "
            "25.00 % at step 20");
  EXPECT_EQ(json::parse(checkpoint_state_to_json_text(setup.run.state))["best_metrics"]["bleu"], "0.25");

  // What a resumed run remembers, and the tables of the run.
  RunSummary summary;
  recall_metrics(setup.plan().directory.metrics_path(), setup.plan().task->metrics(), 20, summary);
  ASSERT_TRUE(summary.best_evaluation.has_value());
  EXPECT_EQ(metrics_text(summary.best_evaluation->metrics, "bleu"),
            "BLEU 25.00 %, loss 3.5000, perplexity 33.12, accuracy 50.00 %");
  EpochRow row;
  row.evaluation = summary.last_evaluation;
  EXPECT_NE(epoch_table({row}, "bleu").find("val BLEU"), std::string::npos);

  // TensorBoard.
  std::string events;
  for (const auto& file : std::filesystem::directory_iterator(setup.plan().directory.events_path())) {
    events += contents_of(file.path().string());
  }
  for (const char* tag : {"bleu/validation", "loss/validation"}) EXPECT_NE(events.find(tag), std::string::npos) << tag;

  // The report and the comparison.
  const RunRecord run = read_run(setup.plan().directory.path());
  ASSERT_NE(run.best_evaluation(), nullptr);
  EXPECT_EQ(run.best_evaluation()->step, 20);
  EXPECT_EQ(json::parse(report_json(run))["best_validation_bleu"], 0.25);
  for (const char* words : {"validation BLEU 25.00 %, loss 3.5000", "best validation BLEU", "<h2>BLEU</h2>"}) {
    EXPECT_NE(report_page(run).find(words), std::string::npos) << words;
  }
  RunRecord worse = run;
  worse.name = "worse";
  std::erase_if(worse.evaluations, [](const EvaluationPoint& point) { return point.step == 20; });
  const Comparison comparison = compare_runs({worse, run});
  EXPECT_EQ(comparison.common.name, "bleu");
  EXPECT_EQ(comparison.common.value, 0.22);
  EXPECT_EQ(comparison.seconds_to_common, (std::vector<double>{30, 20}));
  EXPECT_EQ(compared_columns(comparison).front().title, "best BLEU");
  EXPECT_EQ(compared_columns(comparison).front().best, 1) << "the higher is the better";
  EXPECT_NE(comparison_page(comparison).find("A validation BLEU of 22.00 % was reached first by"), std::string::npos);
}

}  // namespace
}  // namespace brisk
