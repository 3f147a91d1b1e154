// Optimizer steps in order, built ahead of time by threads that sleep when they are ahead far enough.
//
//   const LoaderOptions options{.sequences_per_step = 32, .micro_batch_rows = {4096}, .seed = 1};
//   Loader loader(text_sequences(stream, split.train.chunks), options);
//   for (int64_t i = 0; i < loader.steps_per_epoch(); ++i) {
//     StepBatch step = loader.next();               // epochs follow each other without end
//     for (const MicroBatch& batch : step.micro_batches) ...
//     cursor = step.next;                           // to resume: LoaderOptions{..., .start = cursor}
//   }
//
// The order of an epoch is a pure function of the seed, the epoch and the number of sequences, so what is delivered at
// a cursor never depends on the number of workers or on where the loader started. The last step of an epoch may hold
// fewer sequences; none is dropped unless the options say so, and none appears twice in an epoch.
//
// Several sources (CorpusPart::sources) are drawn as their weights say: at weight 2 each of its sequences appears twice
// in an epoch, at 0.5 half of them do, and the other half in the next. Over epochs all sequences of a source appear
// equally often, give or take one.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "data/batch/batch.h"
#include "data/batch/packer.h"
#include "data/batch/sequences.h"
#include "data/corpus/corpus.h"
#include "data/corpus/statistics.h"

namespace brisk {

// Which part of every step this process computes: its sequences are divided into `parts` (divide_into_parts), and it has
// `count` of them from `first` on.
struct StepShare {
  int64_t parts = 1, first = 0, count = 1;
};

struct LoaderOptions {
  int64_t sequences_per_step = 32;      // batch_size x gradient_accumulation_steps
  RowLimits micro_batch_rows = {4096};  // per row set; at least the longest sequence
  uint64_t seed = 1;
  int workers = 1;  // 0: steps are built inside next()
  bool shuffle = true;
  DataCursor start;                       // the first step to deliver
  int64_t steps_ahead = 4;                // built at most this far ahead
  std::vector<SourceShare> sources = {};  // of the sequences, in their order; empty: one, drawn once
  Padding padding = {};                   // none; or some, to measure what it costs
  StepShare share = {};
  // An epoch's last step is left out where it has at most so many sequences, unless it is the only one.
  int64_t droppable_sequences = 0;
};

class Loader {
 public:
  Loader(std::shared_ptr<const Sequences> sequences, const LoaderOptions& options);
  ~Loader();  // at any time, whatever the workers are doing
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  // The next step; waits for it where it is not ready. What failed inside a worker is thrown here.
  StepBatch next();

  int64_t steps_per_epoch() const;
  DataCursor cursor() const;  // of the step that next() will deliver

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Optimizer steps of an epoch that draws so many sequences.
int64_t steps_of_epoch(int64_t draws, const LoaderOptions& options);

// How many targets there are, and what they weigh: of a step whose micro-batches are complete.
void count_targets(StepBatch& step);

// A permutation of [0, count) that needs no memory: element `index` of the order of (seed, epoch).
int64_t shuffled_index(uint64_t seed, int64_t epoch, int64_t index, int64_t count);

// Divides the first epoch's steps (at most `steps_limit` of them, evenly spaced) as a Loader with these options does.
PackingFigures measure_packing(const Sequences& sequences, const LoaderOptions& options, int64_t steps_limit = 2000);

}  // namespace brisk
