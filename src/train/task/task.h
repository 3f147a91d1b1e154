// What a run learns. A task says what its data is, which model it trains and what one should know of both; the one
// trainer does the rest: steps, evaluation, checkpoints, the clock, the ledger.
//
//   std::unique_ptr<Task> task = make_task(job);             // language_model, classify, mlm
//   TaskData data = task->prepare(job, {});                  // sequences to train on and to evaluate with
//   EngineOptions options{.model = task->model_config(job), .layout = task->batch_layout(job)};
//   Loader loader(data.train, ...);
//   EvaluationResult result = engine.evaluate(*data.validation, ledger);
//   say("{}", metrics_text(result.metrics, job.training.best_by));
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/metrics.h"
#include "data/batch/sequences.h"
#include "data/corpus/corpus.h"
#include "data/corpus/statistics.h"
#include "infer/batch_layout.h"
#include "infer/evaluator.h"
#include "job/job.h"
#include "models/model_config.h"
#include "text/tokenizer.h"

namespace brisk {

struct TaskData {
  std::unique_ptr<Tokenizer> tokenizer;
  std::shared_ptr<const Sequences> train, validation;  // validation may have none
  std::vector<SourceShare> sources;                    // of train: how often an epoch draws them; none: once
  int64_t sequences_per_epoch = 0;
  double rows_per_epoch = 0;  // expected
  std::string fingerprint;    // of the tokens, training and validation: other text or another tokenizer, another one
  std::vector<std::string> notes, warnings;
};

struct DataRequest {
  std::string run;                             // the run directory, where it is resumed and has its files; else ""
  std::unique_ptr<Tokenizer> model_tokenizer;  // that of model.from; or none
  std::vector<std::string> model_labels;       // the classes of model.from, in its order; or none
};

class Task {
 public:
  virtual ~Task() = default;

  // Comes first. Fills the job's keys that the data decides (model.vocab_size, ...).
  virtual TaskData prepare(Job& job, DataRequest request) = 0;

  // As the job trains it: with what is frozen, with adapters.
  virtual ModelConfig model_config(const Job& job) const;
  virtual BatchLayout batch_layout(const Job& /*job*/) const { return {}; }

  // When the number format is known: computes beforehand what every epoch would compute again, if that pays.
  // model_config() is of what is left to compute afterwards. `checkpoint`: of the run that is resumed, or "". Returns
  // lines for the user.
  virtual std::vector<std::string> compute_ahead(const Job& /*job*/, DType /*compute_type*/,
                                                 const std::string& /*checkpoint*/) {
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

  // Tables about an evaluation, shown at the end of a run, and a JSON object for its evaluation.json; or nothing.
  using Details = Description;
  virtual Details details(const EvaluationResult& /*result*/) const { return {}; }
};

std::unique_ptr<Task> make_task(const Job& job);

}  // namespace brisk
