// What a run leaves, in addition to metrics.jsonl, for those who watch it: ledger.jsonl (where each stretch of time
// went, and on which machine), samples.jsonl (what the model makes of the job's prompts), and the events TensorBoard
// reads.
//
//   RunWatch watch(plan, run, resources);      // at the first step, or after a resume: the time before it is start-up
//   watch.count(epoch, result);                // each step
//   watch.step(line);                          // each line of metrics.jsonl
//   watch.evaluation(line);
//   watch.sample(step, epoch, ledger);         // with each evaluation; its time is evaluation's
//   watch.close_stretch();                     // before a checkpoint, so that a killed process loses none of it
//
// Nothing here touches a parameter or draws from the training's random numbers: a run with samples, histograms and
// events has the same bits as one without.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/files/record_log.h"
#include "base/ledger.h"
#include "infer/answer/generate.h"
#include "report/tensorboard/event_file.h"
#include "train/record/metrics_log.h"
#include "train/record/run_text.h"
#include "train/run/setup.h"

namespace brisk {

class RunWatch {
 public:
  RunWatch(const RunPlan& plan, const RunState& run, const RunResources& resources);

  void count(int64_t epoch, const StepResult& result);
  // What the gradients that the parameters hold are multiplied by, for their histograms.
  void gradients_are_scaled(double scaling) { gradient_scaling_ = scaling; }
  void step(const StepMetrics& line);
  void evaluation(const EvaluationMetrics& line);
  // What the task shows of the validation data, and the samples that the job asks for.
  void sample(int64_t step, int64_t epoch, Ledger& ledger);
  bool wants_histograms(int64_t step) const;
  void histograms(int64_t step);  // where the job wants them at this step; the gradient is that of `step`

  void close_stretch();             // a line of ledger.jsonl for the time since the last one
  void epoch(const EpochRow& row);  // and one for what the steps of the epoch add up to so far
  void end_epoch(const EpochRow& row, const Ledger::Totals& whole_epoch);  // and its shares for TensorBoard
  // "finished", "interrupted", ...: the last line of this process. `diverged_at`: the step that could not be made.
  void end(const std::string& how, int64_t diverged_at = 0);
  // After the run went back to an earlier checkpoint: state, engine and files are those of then (RunDirectory::
  // cut_metrics). The time of what is lost is the next stretch's.
  void went_back();
  void sync();
  std::string problem() const;  // why something could not be written; empty: nothing

 private:
  void open_files();
  void start();
  void sample_validation(int64_t step, int64_t epoch, Ledger& ledger);
  void write_sample(int64_t step, int64_t epoch, size_t number, const Task::Sample& sample);

  const RunPlan& plan_;
  const RunState& run_;
  const RunResources& resources_;
  std::unique_ptr<RecordLog> ledger_file_;
  std::unique_ptr<RecordLog> samples_file_;  // made with the first sample
  std::unique_ptr<EventFile> events_;        // none where the job wants none
  std::unique_ptr<Generator> generator_;     // made with the first sample
  // Since the last line of ledger.jsonl.
  Ledger::Totals stretch_start_;
  std::vector<std::pair<int64_t, Ledger::Totals>> closed_;  // step and time of the lines that this process wrote
  int64_t epoch_ = 0, steps_ = 0, tokens_ = 0, sequences_ = 0, rows_ = 0;
  double gradient_scaling_ = 1;
};

}  // namespace brisk
