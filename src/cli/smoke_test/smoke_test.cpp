#include "cli/smoke_test/smoke_test.h"

#include <stdlib.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>

#include "api/training_job.h"
#include "base/child_process.h"
#include "base/error.h"
#include "base/files/files.h"
#include "base/metrics.h"
#include "base/parse_json.h"
#include "base/runtime.h"
#include "base/terminal/terminal.h"
#include "base/text/plural.h"
#include "checkpoint/checkpoint.h"
#include "cli/interrupt.h"
#include "cli/smoke_test/trial.h"
#include "infer/architecture/architecture.h"
#include "infer/open/model_source.h"
#include "job/job_conditions.h"
#include "job/job_options.h"
#include "job/run_length.h"
#include "train/run/plan/engine_plan.h"
#include "train/run/plan/resource_checks.h"
#include "train/task/task.h"

namespace brisk {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr double kStageSeconds = 60;  // a stage takes a second or two; one that takes this long hangs

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::error_code error;
    const fs::path place = fs::temp_directory_path(error);
    if (error) {
      const char* asked = std::getenv("TMPDIR");
      user_error("{}: no folder for the files of the smoke test: {}; name one with TMPDIR=DIR",
                 std::string(asked != nullptr && *asked != '\0' ? asked : "/tmp"), error.message());
    }
    std::string pattern = (place / "brisk-smoke-XXXXXX").string();
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
  explicit SmokeTest(const Job& job) : job_(job), task_(make_task(job)), small_(stand_in(job, folder_.path())) {}

  // Returns false if it was interrupted.
  bool run() {
    say("smoke test of {}: a few steps of its model, then the whole path with a stand-in of {}, {} wide, on a small subset "
        "of its data",
        job_.name, plural(small_.model.num_layers, "layer"), small_.model.d_model);
    stage("memory", [&] { return plan(); });
    stage("data", [&] { return take_subset(); });
    stage("model", [&] { return try_real_model(); });
    if (!job_.model.from.empty() || !job_.training.teacher.empty()) stage("base", [&] { return train_base(); });
    stage("train", [&] { return train(); });
    stage("kill", [&] { return kill(); });
    stage("resume", [&] { return resume(); });
    stage("evaluate", [&] { return evaluate(); });
    if (const auto asked = task_->try_out(small_.output, small_.data.train.back().path))
      stage(asked->command.c_str(), [&] { return asked->describe(child(asked->arguments)); });
    stage("export", [&] { return export_model(); });
    if (interrupted()) return false;
    say("smoke test: everything works, in {}{}", format_duration(seconds_since(start_)),
        expectation_.empty() ? "" : fmt::format("; {}", expectation_));
    for (const std::string& warning : warnings_) warn("{}", warning);
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
      if (!interrupted()) user_error("smoke test: {} failed: {}", name, in_the_users_names(error.what()));
    }
  }

  std::string child(const std::vector<std::string>& arguments) {
    const std::string output = folder_.path() + "/output.txt";
    ChildProcess process(arguments, output);
    process.wait(kStageSeconds, interrupted);
    if (!process.succeeded()) user_error("{} ({})", process.last_words(), process.how_it_ended());
    return read_file(output, file_kind::output_of_command);
  }

  // Names of our copies, which the user has never seen, are those of what they were copied from.
  std::string in_the_users_names(std::string text) const {
    const auto replace = [&](const std::string& ours, const std::string& theirs) {
      for (size_t at = 0; (at = text.find(ours, at)) != std::string::npos; at += theirs.size()) {
        text.replace(at, ours.size(), theirs);
      }
    };
    for (const auto& [copy, original] : origin_) replace(copy, original);
    for (const char* name : {"/whole.json", "/base.json", "/job.json", "/run/job.json", "/trial/job.json"}) {
      replace(folder_.path() + name, "the job");
    }
    for (const char* name : {"/trial", "/whole", "/run", "/base"}) replace(folder_.path() + name, job_.output);
    return text;
  }

  std::string write_job(const Job& job, const char* name) {
    const std::string path = folder_.path() + "/" + name;
    write_file_atomically(path, job_to_json_text(job));
    return path;
  }

  // Memory of the real model, with the vocabulary size that the job asks for and all texts as long as they may be.
  std::string plan() {
    // A runtime of its own: only one may hold a GPU.
    Runtime runtime({.threads = thread_pool().size()});
    const RuntimeScope scope(runtime);
    Device& device = *training_device(*task_, job_).device;
    const int64_t longest = job_.training.max_length;
    const LengthFigures lengths{.longest = longest, .mean = static_cast<double>(longest)};
    const EngineOptions options = plan_engine(*task_, job_, device, {lengths}).options;
    const MemoryPlan plan = refuse_what_cannot_fit(options);
    trial_size_ = trial_size(job_, options);
    return fmt::format("the job itself needs about {} of memory{}, {} are available",
                       format_bytes(static_cast<double>(plan.total())), device.is_cuda() ? " on the GPU" : "",
                       format_bytes(static_cast<double>(memory_for_engine(device))));
  }

  std::string take_subset() {
    if (job_.data.train.empty())
      user_error("data.train is missing: name the text to train on, in the job or with --data");
    const SmokeSubset subset = task_->take_subset(job_, folder_.path(), {}, small_);
    origin_ = subset.origin;
    return subset.text;
  }

  // The job itself on as few rows as this machine computes in seconds.
  std::string try_real_model() {
    if (trial_size_.steps == 0) {
      if (!job_.model.from.empty()) open_model_source(job_.model.from);
      return fmt::format("not tried: a sequence of {} tokens takes about {} here", job_.training.max_length,
                         format_duration(trial_size_.seconds_per_sequence));
    }
    Job few = job_;
    const int64_t rows = std::max<int64_t>(16, trial_size_.steps * trial_size_.sequences);
    const SmokeSubset subset =
        task_->take_subset(job_, folder_.path() + "/few",
                           {.rows = rows,
                            .rows_of_class = std::max<int64_t>(4, rows / 4),
                            .validation_rows = trial_size_.evaluated >= 8 ? trial_size_.evaluated : 0},
                           few);
    origin_.insert(origin_.end(), subset.origin.begin(), subset.origin.end());
    const Trial trial = try_model(few, trial_size_, folder_.path(), interrupted);
    if (interrupted()) return "";
    for (const std::string& warning : trial.warnings) warnings_.push_back(in_the_users_names(warning));
    const double held_out = few.data.validation.empty() ? few.data.validation_fraction : 0;
    expect(trial, trial.training_tokens / (1 - held_out) / subset.share);
    return fmt::format("{} of {}: about {} tokens/s{}", plural(trial_size_.steps, "step"),
                       plural(trial_size_.sequences, "sequence"), format_count(trial.tokens_per_second),
                       trial.evaluation ? fmt::format("; validation {}, after {} on a few rows",
                                                      metrics_text(trial.evaluation->metrics, job_.training.best_by),
                                                      plural(trial_size_.steps, "step"))
                                        : "; not evaluated");
  }

  // How long the run itself should take; `epoch`: the tokens of one.
  void expect(const Trial& trial, double epoch) {
    if (trial.tokens_per_second <= 0) return;
    const TrainingOptions& training = job_.training;
    const double of_step =
        static_cast<double>(training.batch_size * training.gradient_accumulation_steps) * trial.tokens_per_sequence;
    double tokens = static_cast<double>(std::max<int64_t>(1, training.num_epochs)) * epoch;
    if (training.max_steps > 0) tokens = static_cast<double>(training.max_steps) * of_step;
    if (!training.stop.empty()) {
      const RunLength stop = parse_run_length(training.stop, "training.stop");
      if (stop.unit == RunLength::Unit::allocation) return;
      if (stop.unit == RunLength::Unit::seconds) {
        expectation_ = fmt::format("training.stop {} should be about {:.2g} epochs", training.stop,
                                   stop.amount * trial.tokens_per_second / std::max(1.0, epoch));
        return;
      }
      tokens = stop.unit == RunLength::Unit::epochs    ? stop.amount * epoch
               : stop.unit == RunLength::Unit::updates ? stop.amount * of_step
                                                       : stop.amount;
    }
    constexpr double kBesides = 1.1;  // evaluations and the rest
    expectation_ = fmt::format("the whole run should take about {} ({} tokens at {} a second, and evaluations)",
                               format_duration(kBesides * tokens / trial.tokens_per_second), format_count(tokens),
                               format_count(trial.tokens_per_second));
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
      if (options[i].unmet_condition(true) != nullptr) options[i].take(defaults[i]);
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
    const bool evaluated = !metrics_of_line(summary, {}).empty();
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
    const std::string& targets = traits_of_task(job_.task).targets;
    const std::string counted = result.contains(targets) ? targets : "tokens";
    return fmt::format("{} {}", result.at(counted).get<int64_t>(), counted);
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
  // So that the folder is removed.
  InterruptGuard guard_{Runtime::current(), "interrupted: removing what the smoke test made"};
  TemporaryFolder folder_;
  Job small_;
  TrialSize trial_size_;
  std::vector<std::pair<std::string, std::string>> origin_;  // of copies of the user's files
  std::string expectation_;                                  // of the whole run; empty: nothing is known
  std::vector<std::string> warnings_;                        // of the real model's steps
  Clock::time_point start_ = Clock::now();
};

}  // namespace

bool run_smoke_test(const TrainingJob& job, bool resume) { return SmokeTest(resolved_job(job, resume)).run(); }

}  // namespace brisk
