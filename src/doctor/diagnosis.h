// All that `brisk doctor` found: what was measured, what follows from it, which fixes were tried and what each gained.
// doctor/show turns it into text, Markdown, JSON and a page; nothing in it depends on how it is shown.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "doctor/judge/finding.h"
#include "doctor/readings/readings.h"

namespace brisk {

// How the loss and the gradient of one optimizer step differ between the rung and the one before.
struct StepProof {
  bool measured = false;
  bool same_bits = false;
  double loss = 0, other_loss = 0;
  // Of all trained tensors: |difference| / |gradient| as norms, the worst tensor and the whole gradient; and what the
  // precisions involved allow.
  double worst_difference = 0, difference = 0, allowed = 0;
  std::string worst_tensor;
  int64_t tensors = 0;
  bool holds = false;  // bits, or within what is allowed
};

struct Rung {
  std::string step;     // "as written", "padding: none"
  std::string finding;  // its id; empty: the first rung
  Fix fix;
  Sameness sameness = Sameness::same_bits;
  double tokens_per_second = 0, rows_per_second = 0;  // real tokens; sequences
  double gain = 1, gain_low = 1, gain_high = 1;       // of the time per token, over the last rung that was kept; 95 %
  int64_t pairs = 0;                                  // of alternating stretches that the interval is of
  double cumulative = 1;                              // over the first rung, if it is kept
  double utilisation = 0;
  double epoch_seconds = 0;
  double predicted_gain = 1;
  int64_t peak_memory_bytes = 0;
  double loss = -1, loss_spread = -1;  // after loss_tokens; of repeated runs, the standard deviation
  double loss_tokens = 0;
  StepProof proof;
  bool kept = false;
  std::string verdict;      // why: "kept: 2.31x [2.27, 2.35]", "within the noise", "loss differs", "ended with: ..."
  bool interleaved = true;  // false: one after the other, since both do not fit into the memory
};

struct NotMeasured {
  std::string step;
  double predicted_gain = 1;
  std::string reason;  // "the budget was over", "changes the maths: --fix all tries it", "nothing brisk can set"
};

// What --verify found: both jobs to the end.
struct Verification {
  struct Side {
    std::string run;  // folder
    double seconds = 0, seconds_per_epoch = 0, tokens_per_second = 0;
    std::string metric;
    double value = 0, low = 0, high = 0;  // of the best evaluation, with its 95 % interval; equal: none is known
  };
  Side before, after;
  bool same_quality = false;  // the intervals overlap
  std::string verdict;
};

struct Diagnosis {
  std::string job_name, job_path;
  bool naive = false;                 // --baseline naive
  std::vector<std::string> settings;  // --set, to repeat it
  double budget_seconds = 0, seconds = 0;
  Job written, tuned;      // resolved; tuned: with every fix that was kept
  std::string tuned_text;  // the job file of the tuned job
  Readings before, after;  // of the first rung and of the last that was kept
  std::vector<Finding> findings;
  std::vector<Rung> ladder;  // the first is the job as measured first
  std::vector<NotMeasured> not_measured;
  std::optional<Verification> verification;
  std::vector<std::string> notes;  // what the reader must know of how it was measured
  bool interrupted = false;
  std::string command;          // that repeats it
  std::string summary() const;  // a sentence: "4.2x faster with 3 changes", "nothing worth changing"
};

}  // namespace brisk
