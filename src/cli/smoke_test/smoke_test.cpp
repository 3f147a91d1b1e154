#include "cli/smoke_test/smoke_test.h"

#include <stdlib.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>

#include "api/training_job.h"
#include "base/error.h"
#include "base/files/files.h"
#include "base/parse_json.h"
#include "base/runtime.h"
#include "base/terminal/terminal.h"
#include "checkpoint/checkpoint.h"
#include "cli/interrupt.h"
#include "cli/smoke_test/child_process.h"
#include "cli/smoke_test/subset.h"
#include "data/table/label_check.h"
#include "infer/architecture/architecture.h"
#include "job/job_conditions.h"
#include "job/job_options.h"
#include "train/run/engine_plan.h"
#include "train/run/resource_checks.h"
#include "train/task/task.h"

namespace brisk {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr double kStageSeconds = 60;  // a stage takes a second or two; one that takes this long hangs

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (fs::temp_directory_path() / "brisk-smoke-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr)
      user_error("{}: cannot make a folder there: {}", pattern, explain_errno(errno));
    path_ = pattern;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// The job with every option as its declaration has it in a smoke test: what is tested is the path.
Job stand_in(Job job, const std::string& folder) {
  shrink_for_smoke_test(declare_job_options(job));
  job.output = folder + "/run";
  job.data.cache_dir = folder + "/cache";
  resolve_defaults(job);
  return job;
}

class SmokeTest {
 public:
  explicit SmokeTest(const Job& job) : job_(job), task_(make_task(job.task)), small_(stand_in(job, folder_.path())) {}

  // Returns false if it was interrupted.
  bool run() {
    say("smoke test of {}: the whole path on a small subset of its data, with a stand-in for the model: {} layers, {} wide",
        job_.name, small_.model.num_layers, small_.model.d_model);
    stage("memory", [&] { return plan(); });
    stage("data", [&] { return take_subset(); });
    if (!job_.model.from.empty() || !job_.training.teacher.empty()) stage("base", [&] { return train_base(); });
    stage("train", [&] { return train(); });
    stage("kill", [&] { return kill(); });
    stage("resume", [&] { return resume(); });
    stage("evaluate", [&] { return evaluate(); });
    switch (task_->answers()) {
      case Task::Answers::none: break;
      case Task::Answers::classes: stage("predict", [&] { return predict(); }); break;
      case Task::Answers::text: stage("generate", [&] { return generate(); }); break;
    }
    stage("export", [&] { return export_model(); });
    if (interrupted()) return false;
    say("smoke test: everything works, in {}. Its {} means nothing: the model is a stand-in trained for {} steps",
        format_duration(seconds_since(start_)), job_.training.best_by, kSmokeTestSteps);
    return true;
  }

 private:
  using Clock = std::chrono::steady_clock;
  static bool interrupted() { return Runtime::current().cancelled(); }
  static double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
  }

  void stage(const char* name, const std::function<std::string()>& body) {
    if (interrupted()) return;
    const auto start = Clock::now();
    try {
      const std::string what = body();
      say("  {:<9} {:>8}  {}", name, format_duration(seconds_since(start)), what);
    } catch (const UserError& error) {
      if (!interrupted()) user_error("smoke test: {} failed: {}", name, error.what());
    }
  }

  std::string child(const std::vector<std::string>& arguments) {
    const std::string output = folder_.path() + "/output.txt";
    ChildProcess process(arguments, output);
    process.wait(kStageSeconds, interrupted);
    if (!process.succeeded()) user_error("{} ({})", process.last_words(), process.how_it_ended());
    return read_file(output, file_kind::output_of_command);
  }

  std::string write_job(const Job& job, const char* name) {
    const std::string path = folder_.path() + "/" + name;
    write_file_atomically(path, job_to_json_text(job));
    return path;
  }

  // Memory of the real model, with the vocabulary size that the job asks for and all texts as long as they may be.
  std::string plan() {
    Device& device = *training_device(*task_, job_).device;
    const int64_t longest = job_.training.max_length;
    const LengthFigures lengths{.longest = longest, .mean = static_cast<double>(longest)};
    const MemoryPlan plan = refuse_what_cannot_fit(plan_engine(*task_, job_, device, lengths));
    return fmt::format("the job itself needs about {} of memory{}, {} are available",
                       format_bytes(static_cast<double>(plan.total())), device.is_cuda() ? " on the GPU" : "",
                       format_bytes(static_cast<double>(memory_for_engine(device))));
  }

  std::string take_rows() {
    std::vector<std::string> paths;
    for (const DataSource& source : job_.data.train) paths.push_back(source.path);
    small_.data.train = {DataSource(folder_.path() + "/subset.jsonl")};
    TableSubset subset;
    copy_table_subset(job_, paths, small_.data.train[0].path, subset);
    if (subset.labels && !job_.data.allow_unusual_labels) {
      const LabelFindings found = check_labels({subset.classes.begin(), subset.classes.end()}, false);
      if (!found.problem.empty()) user_error("{}: {}", fmt::join(paths, ", "), found.problem);
    }
    if (!job_.data.validation.empty()) {
      small_.data.validation = {folder_.path() + "/validation.jsonl"};
      copy_table_subset(job_, job_.data.validation, small_.data.validation[0], subset);
    }
    small_.data.validation_fraction = std::max(0.1, small_.data.validation_fraction);
    small_.data.text_field = "text";
    small_.data.label_field = subset.labels ? "label" : "";
    small_.data.pair_field = subset.pairs ? "pair" : "";
    return subset.labels ? fmt::format("{} of the job's own rows, of {} classes", subset.rows, subset.classes.size())
                         : fmt::format("{} of the job's own rows", subset.rows);
  }

  std::string take_subset() {
    if (job_.data.train.empty())
      user_error("data.train is missing: name the text to train on, in the job or with --data");
    if (traits_of_task(job_.task).reads_table) return take_rows();
    int64_t bytes = 0;
    std::vector<std::string> plain;  // plain paths form one source together
    small_.data.train.clear();
    for (const DataSource& source : job_.data.train) {
      if (source == DataSource(source.path)) {
        plain.push_back(source.path);
        continue;
      }
      DataSource& subset = small_.data.train.emplace_back(source);
      subset.path = fmt::format("{}/subset-{}", folder_.path(), small_.data.train.size());
      bytes += copy_text_subset({source.path}, subset.path);
    }
    if (!plain.empty()) {
      small_.data.train.emplace_back(folder_.path() + "/subset");
      bytes += copy_text_subset(plain, small_.data.train.back().path);
    } else {  // `brisk eval` reads the last source, but takes these two from the job
      const DataSource& last = small_.data.train.back();
      if (!last.text_field.empty()) small_.data.text_field = last.text_field;
      if (!last.document.empty()) small_.data.document = last.document;
    }
    if (!job_.data.validation.empty()) {
      bytes += copy_text_subset(job_.data.validation, folder_.path() + "/validation");
      small_.data.validation = {folder_.path() + "/validation"};
    }
    return fmt::format("{} of the job's own text", format_bytes(static_cast<double>(bytes)));
  }

  // Trains a small run that replaces model.from and the teacher.
  std::string train_base() {
    Job base = small_;
    base.output = folder_.path() + "/base";
    base.model.from.clear();
    base.training.teacher.clear();
    base.training.max_steps = small_.training.save_steps;
    Job plain;
    const std::vector<Option> options = declare_job_options(base), defaults = declare_job_options(plain);
    for (size_t i = 0; i < options.size(); ++i) {  // what speaks of the two
      if (options[i].unmet_condition(true) != nullptr) options[i].take_default(defaults[i]);
    }
    child({"train", write_job(base, "base.json")});
    if (!job_.training.teacher.empty()) small_.training.teacher = base.output;
    if (job_.model.from.empty())
      return fmt::format("{} steps of a new model, in place of the teacher {}", small_.training.save_steps,
                         job_.training.teacher);
    small_.model = job_from_json_text(read_file(base.output + "/job.json", file_kind::job), base.output).model;
    small_.model.from = base.output;
    return fmt::format("{} steps of a new model, to start from in place of {}", small_.training.save_steps,
                       job_.model.from);
  }

  std::string train() {
    Job whole = small_;
    whole.output = folder_.path() + "/whole";
    child({"train", write_job(whole, "whole.json")});
    const Json summary = parse_own_json(read_file(whole.output + "/summary.json", file_kind::summary));
    small_.training.precision = summary.at("precision");  // "auto" might measure otherwise the next time
    const bool evaluated = summary.contains("validation_loss");
    return fmt::format("tokenizer, {} steps, {}, {} checkpoints kept", summary.at("step").get<int64_t>(),
                       evaluated ? "evaluation" : "no evaluation (no text to spare for it)",
                       list_checkpoints(whole.output).size());
  }

  std::string kill() {
    ChildProcess process({"train", write_job(small_, "job.json")}, folder_.path() + "/output.txt");
    const bool ended =
        process.wait(kStageSeconds, [&] { return interrupted() || !list_checkpoints(small_.output).empty(); });
    if (!ended) {
      const bool saved = !list_checkpoints(small_.output).empty();
      process.kill();
      if (!saved) user_error("no checkpoint after {:g} s", kStageSeconds);
      return fmt::format("SIGKILL after the checkpoint of step {}", list_checkpoints(small_.output).back().step);
    }
    if (!process.succeeded()) user_error("{} ({})", process.last_words(), process.how_it_ended());
    return "it ended before it could be killed";
  }

  std::string resume() {
    child({"train", folder_.path() + "/job.json", "--resume"});
    const auto weights_of = [](const std::string& run) {
      return MappedFile(latest_checkpoint(run).value() + "/model.safetensors");
    };
    if (weights_of(small_.output).text() != weights_of(folder_.path() + "/whole").text())
      user_error("the weights differ from those of the run that was not killed");
    return "the weights equal those of the run that was not killed, to the bit";
  }

  std::string evaluate() {
    const Json result =
        parse_own_json(last_line(child({"eval", small_.output, "--data", small_.data.train.back().path, "--json"})));
    const char* counted = result.contains("examples") ? "examples" : "tokens";
    return fmt::format("{} {}", result.at(counted).get<int64_t>(), counted);
  }

  std::string predict() {
    const std::string answers = child({"predict", small_.output, "--data", small_.data.train.back().path});
    const auto count = std::count(answers.begin(), answers.end(), '{') / 2;  // each has an object of probabilities
    return fmt::format("{} answers", count);
  }

  std::string generate() {
    child({"generate", small_.output, "--max-tokens", "16", "--temperature", "0"});
    return "16 tokens";
  }

  std::string export_model() {
    try {
      architecture_of(small_.model).check_huggingface(small_.model);
    } catch (const UserError& error) {  // nothing is wrong with such a job
      return fmt::format("not in Hugging Face format: {}", error.what());
    }
    child({"export", small_.output, "--format", "huggingface", "--output", folder_.path() + "/exported"});
    return "Hugging Face format";
  }

  static std::string last_line(const std::string& text) {
    const size_t begin = text.rfind("\n{");
    return begin == std::string::npos ? text : text.substr(begin + 1);
  }

  const Job& job_;
  const std::unique_ptr<Task> task_;
  InterruptGuard guard_{Runtime::current(), kStoppingSmokeTest};  // so that the folder is removed
  TemporaryFolder folder_;
  Job small_;
  Clock::time_point start_ = Clock::now();
};

}  // namespace

bool run_smoke_test(const TrainingJob& job, bool resume) { return SmokeTest(resolved_job(job, resume)).run(); }

}  // namespace brisk
