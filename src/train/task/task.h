// A task: what a run learns, and everything brisk knows about that. It reads the data of a job, says which model is
// trained on which micro-batches and what one should know of both, evaluates a trained model on other data, and says
// what a trained model is good for. The one trainer does the rest: steps, checkpoints, the clock, the ledger. Nothing
// outside compares a job's task with a name.
//
//   std::unique_ptr<Task> task = make_task(job);             // language_model, classify, mlm, ...
//   TaskData data = task->prepare(job, {});                  // sequences to train on and to evaluate with
//   job = with_found(job, data.found);                       // model.vocab_size is the tokenizer's now
//   EngineOptions options{.model = task->model_config(job), .layout = task->batch_layout(job)};
//   Loader loader(data.train, ...);
//
//   const auto model = open_trained_model("runs/reviews", "");
//   TaskEvaluation evaluation = evaluate(*make_task(model->job.task), *model, {"test.csv"});
//
// A new task is one file (a class derived from this one and a function that makes it) and its entry in job/tasks.def, with
// the traits by which options apply to it. tests/api/extending/riddles_task.cpp is a worked example.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/metrics.h"
#include "data/batch/sequences.h"
#include "data/corpus/corpus.h"
#include "data/corpus/statistics.h"
#include "data/table/labels.h"
#include "infer/answer/generate.h"
#include "infer/answer/predict.h"
#include "infer/answer/translate.h"
#include "infer/forward/batch_layout.h"
#include "infer/forward/evaluator.h"
#include "infer/open/trained_model.h"
#include "job/job.h"
#include "job/options/options.h"
#include "models/model_config.h"
#include "text/tokenizer.h"
#include "train/engine/process_group.h"
#include "train/task/smoke_subset.h"

namespace brisk {

struct TaskData {
  std::unique_ptr<Tokenizer> tokenizer;
  std::shared_ptr<const Sequences> train, validation;  // validation may have none
  LabelSet labels;                                     // of a classifier
  std::vector<SourceShare> sources;                    // of train: how often an epoch draws them; none: once
  int64_t sequences_per_epoch = 0;
  double rows_per_epoch = 0;  // expected
  // Of the tokens, training and validation: other text or another tokenizer, another one. Never empty: by this a resumed run
  // sees that the data are those it began with.
  std::string fingerprint;
  // Of what is evaluated, whatever the tokenizer: by which `brisk compare` sees that two runs had the same. Nothing
  // without validation.
  std::optional<uint64_t> validation_fingerprint;
  FoundValues found;                     // of the job's options that its data decides (Option::decided_by_data)
  std::vector<std::string> cache_files;  // that its tokens lie in
  std::vector<std::string> notes, warnings;
  std::vector<std::string>
      warnings_of_all;  // what may be said of all of the data only, not of a smoke test's part of it
};

struct DataRequest {
  ProcessGroup* processes = nullptr;           // that train together; none: this one alone
  std::string run;                             // the run directory, where it is resumed and has its files; else ""
  std::unique_ptr<Tokenizer> model_tokenizer;  // that of model.from; or none
  std::unique_ptr<Tokenizer> model_target_tokenizer;  // likewise, where it writes with another one
  std::vector<std::string> model_labels;              // the classes of model.from, in its order; or none
};

class Task {
 public:
  virtual ~Task() = default;

  // Comes first in a run; the other functions are given the job with what this decided.
  virtual TaskData prepare(const Job& job, DataRequest request) = 0;

  // As the job trains it: with what is frozen, with adapters.
  virtual ModelConfig model_config(const Job& job) const;
  // Also before the data is prepared, to plan memory.
  virtual BatchLayout batch_layout(const Job& /*job*/) const { return {}; }
  // Why only the CPU can train this job; or nothing.
  virtual std::string needs_cpu(const Job& /*job*/) const { return {}; }

  // When the number format and the device are known: computes beforehand what every epoch would compute again, if that pays.
  // model_config() is of what is left to compute afterwards. `checkpoint`: of the run that is resumed, or "". What
  // depends on this machine, all processes decide alike. Returns lines for the user.
  virtual std::vector<std::string> compute_ahead(const Job& /*job*/, DType /*compute_type*/,
                                                 const std::string& /*checkpoint*/, Device& /*device*/,
                                                 ProcessGroup& /*processes*/) {
    return {};
  }

  // Lines about the data, and a JSON object for the run's statistics.json.
  struct Description {
    std::string text, json;
  };
  virtual Description describe_data(const Job& job, const TaskData& data, const PackingFigures& packing) const = 0;
  // One line: the settings of the model that no table shows.
  virtual std::string describe_model(const Job& job) const;

  // What the run directory has besides: labels, say.
  virtual void write_files(const std::string& /*run*/) const {}

  // What an evaluation measures, of which the values do not count: what training.best_by may name.
  virtual Metrics metrics() const = 0;
  virtual std::unique_ptr<Evaluator> make_evaluator(const EvaluatorParts& parts) const {
    return make_token_evaluator(parts);
  }
  // Those of them that are the task's own, added to what the evaluator measured of the model on these sequences.
  virtual void add_metrics(const Model& /*model*/, const ParameterStore& /*store*/, const Tokenizer& /*tokenizer*/,
                           const Sequences& /*sequences*/, Metrics& /*metrics*/) const {}

  // Tables about an evaluation, shown at the end of a run, and a JSON object for its evaluation.json; or nothing.
  virtual Description details(const EvaluationResult& /*result*/, const LabelSet& /*labels*/) const { return {}; }

  // Texts of the validation data, shown with what the model makes of them at each evaluation.
  struct Sample {
    std::string prompt, text, reference;
    int64_t tokens = 0;
    bool ended = true;
    std::string image = {};  // the path of one that the text is of
  };
  virtual std::vector<Sample> samples(const Model& /*model*/, const ParameterStore& /*store*/,
                                      const Tokenizer& /*tokenizer*/, const Sequences& /*validation*/) const {
    return {};
  }

  // Other data as a trained model reads it, in sequences of at most max_length tokens.
  struct EvaluationRequest {
    std::vector<std::string> paths;
    int64_t max_length = 0;
    // Of text to text: files aligned with `paths`, whether BLEU and chrF are wanted, and how their texts are translated.
    std::vector<std::string> target = {};
    bool translate = true;
    TranslateOptions translation = {};
    std::string bleu_tokenizer = {};
  };
  struct EvaluationData {
    std::shared_ptr<const Sequences> sequences;
    BatchLayout layout;
    std::vector<std::string> notes;
    int64_t cut = 0;           // texts that are longer than max_length and lose their end
    Description details = {};  // what is known of it beforehand; or nothing
  };
  virtual EvaluationData open_evaluation(const TrainedModel& model, const EvaluationRequest& request) const = 0;

  // Asking a trained model: to continue texts, to translate them, and to name their classes. UserError where it cannot.
  virtual std::unique_ptr<Generator> open_generator(const TrainedModel& model) const;
  virtual std::unique_ptr<Translator> open_translator(const TrainedModel& model) const;
  virtual std::unique_ptr<Predictor> open_predictor(const TrainedModel& model, bool pairs, int64_t max_length) const;

  // For a smoke test: a small subset of the job's own data in `folder`, named in `small.data`.
  virtual SmokeSubset take_subset(const Job& job, const std::string& folder, const SubsetSize& size, Job& small) const;
  // And a command that asks the trained run something; none: nothing can be asked.
  struct TryOut {
    std::string command;                 // "generate"
    std::vector<std::string> arguments;  // with the command
    std::function<std::string(const std::string& output)> describe;
  };
  virtual std::optional<TryOut> try_out(const std::string& /*run*/, const std::string& /*data*/) const { return {}; }
  // What to do with a trained model, to be typed; `run` is quoted for a shell.
  virtual std::string usage(const std::string& run) const;

  // The same task where a model reads images, if it reads texts otherwise.
  virtual std::unique_ptr<Task> for_images() const { return nullptr; }
};

struct TaskEntry {
  std::string_view name;  // as a job has it
  std::unique_ptr<Task> (*make)();
};
// The table: that of job/tasks.def.
std::span<const TaskEntry> tasks();

std::unique_ptr<Task> make_task(std::string_view name);
std::unique_ptr<Task> make_task(const Job& job);  // as its model's data is

}  // namespace brisk
