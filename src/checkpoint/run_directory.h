// The run directory: job.json, tokenizer.json, tokenizer_config.json, metrics.jsonl, ledger.jsonl, samples.jsonl,
// statistics.json (of the data), summary.json, checkpoints/, tensorboard/; for classifiers labels.json and
// evaluation.json; and report.html if `brisk report` wrote one.
//
//   RunDirectory run = RunDirectory::open(job.output, RunDirectory::Mode::fresh);   // or resume; holds the run's lock
//   write_file_atomically(run.job_path(), job_to_json_text(job));
//   const std::optional<std::string> checkpoint = latest_checkpoint(run.path());
//   if (resuming) run.cut_metrics(checkpoint ? state.step : 0);   // the lines after it will be written again
//
//   const RunDirectory trained = RunDirectory::open_for_reading("runs/bible");      // generate, eval: no lock
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace brisk {

constexpr const char* kTokenizerFile = "/tokenizer.json";  // of a run directory
// Of the translations, where they have one of their own.
constexpr const char* kTargetTokenizerFile = "/target_tokenizer.json";

class RunDirectory {
 public:
  // fresh: creates the directory; UserError if it holds something already, other than what a process left that was ended
  // before its first step. import: the same, for a run that is not trained here.
  // resume: opens it, and clears what a killed process left half-written; UserError if there is no such folder. One
  // that was killed before it wrote anything is a run at step 0: has_run() tells.
  // overwrite: as fresh, but it may hold a run, which stays whole until clear(); UserError if it holds anything else.
  // follow: another process of the same training has opened it, and writes it; this one reads.
  enum class Mode : uint8_t { fresh, import, resume, overwrite, follow };
  static RunDirectory open(const std::string& path, Mode mode);
  static RunDirectory open_for_reading(const std::string& path);  // UserError unless it has a job and a tokenizer

  RunDirectory(RunDirectory&& other) noexcept;
  RunDirectory& operator=(RunDirectory&& other) noexcept;
  ~RunDirectory();

  const std::string& path() const { return path_; }
  std::string job_path() const { return path_ + "/job.json"; }
  std::string tokenizer_path() const { return path_ + kTokenizerFile; }
  std::string metrics_path() const { return path_ + "/metrics.jsonl"; }
  std::string ledger_path() const { return path_ + "/ledger.jsonl"; }
  std::string samples_path() const { return path_ + "/samples.jsonl"; }
  std::string events_path() const { return path_ + "/tensorboard"; }
  std::string summary_path() const { return path_ + "/summary.json"; }
  std::string evaluation_path() const { return path_ + "/evaluation.json"; }  // of the best model of a classifier
  std::string statistics_path() const { return path_ + "/statistics.json"; }  // of the data
  std::string checkpoints_path() const { return path_ + "/checkpoints"; }

  bool has_run() const { return has_run_; }  // there was a job.json when it was opened

  // Takes back what open() made, for a job that was refused before it wrote anything: a folder that was not there is
  // gone again. What anyone else put there stays.
  void abandon();

  // Removes the run that it held when it was opened: the files that brisk writes, and nothing else.
  void clear();

  // Keeps the lines of metrics.jsonl with step <= last_step, so that a resumed curve has no step twice; a line that a
  // crash cut short goes too. Likewise ledger.jsonl, samples.jsonl and TensorBoard's events. Atomic file by file.
  // Returns the lines of metrics.jsonl removed.
  int64_t cut_metrics(int64_t last_step) const;

 private:
  RunDirectory() = default;

  std::string path_;
  int lock_ = -1;  // file descriptor
  bool has_run_ = false;
  std::vector<std::string> made_;  // by open(), in the order made
};

}  // namespace brisk
