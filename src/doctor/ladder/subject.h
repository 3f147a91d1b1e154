// One of the jobs that a doctor compares: its process, and all that was measured of it so far.
//
//   Subject subject(job, length, folder);
//   subject.start();                               // RunFailed where it cannot train
//   subject.measure(0.5);                          // about half a second of steps more
//   subject.seconds_per_token();
//   subject.loss_after(100'000);                   // tokens since its first step
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "doctor/ladder/variants.h"
#include "doctor/measure/measured_run.h"

namespace brisk {

class Subject {
 public:
  // `processes`: that train it together.
  Subject(Job job, const MeasuringLength& length, std::string folder, bool keeps_gradient = true,
          int64_t processes = 1);

  void start();  // and the steps until its memory is touched and its speed settled
  const Block& measure(double seconds);
  // A stretch in which a GPU is watched, once; it is not among the blocks.
  const Block& watched_block(double seconds);
  void stop() { run_.reset(); }  // its figures stay
  bool runs() const { return run_ != nullptr; }
  MeasuredRun& run() { return *run_; }

  const Job& job() const { return job_; }
  void set_job(Job job) { job_ = std::move(job); }  // one that differs in nothing that its steps show
  int64_t processes() const { return processes_; }
  const ReadyFacts& facts() const { return facts_; }
  const std::string& gradient_path() const { return gradient_; }
  const std::vector<Block>& blocks() const { return blocks_; }  // without the warm-up
  Block total() const;                                          // of these
  double start_seconds() const { return start_seconds_; }       // warm-up included
  double step_seconds() const { return step_seconds_; }         // about, by the last steps

  // Of a block's steps; where they are shorter than the job's, as if the update came as rarely as it does there.
  double seconds_per_token(const Block& block) const;
  double seconds_per_token() const;  // the median of the blocks
  double tokens_per_sequence() const;

  double tokens_done() const;  // since the first step, the warm-up included
  // Mean of the steps' losses in the second half of so many tokens; none where it has not come so far.
  std::optional<double> loss_after(double tokens) const;

 private:
  int64_t sequences_in(double seconds) const;
  Block go(int64_t sequences, bool watches_gpu = false);

  Job job_;
  MeasuringLength length_;
  std::string folder_, gradient_;
  int64_t processes_;
  std::unique_ptr<MeasuredRun> run_;
  ReadyFacts facts_;
  std::vector<Block> blocks_;
  Block watched_;
  std::vector<double> tokens_, losses_;  // of every step
  double start_seconds_ = 0, step_seconds_ = 0;
};

}  // namespace brisk
