// The micro-batch with the best throughput, found by timing a few sizes on the job's own model and sequences. It
// changes memory, speed and the order of sums, never the maths: the optimizer step stays the same sequences.
//
//   const MicroBatchChoice choice = measure_micro_batch(engine_options, sequences, loader_options, fits);
//   say("micro-batch: {}", choice.reason);   // "2048 tokens, the fastest measured: 1024 11.2K tokens/s, 2048 ..."
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "data/batch/loader.h"
#include "train/engine/engine.h"

namespace brisk {

struct MicroBatchChoice {
  int64_t tokens = 0;
  std::string reason;  // for the user: what was measured
};

// Rows of the sequences of an epoch in one row set.
struct LengthFigures {
  int64_t longest = 0;
  double mean = 0, variance = 0;
};
// Sources (LoaderOptions::sources) that are drawn more or less often than once count accordingly.
LengthFigures length_figures(const Sequences& sequences, const std::vector<SourceShare>& sources = {}, int set = 0);

// Rows that nearly all steps of `per_step` sequences have at most: the mean and five standard deviations.
int64_t rows_of_nearly_all_steps(int64_t per_step, const LengthFigures& lengths);

// Rows of a micro-batch before anything is measured: what was `asked` for, or else (0) the `usual` of the device; a
// sequence at least. Unasked, it is no more than nearly all steps need: memory for a step of none but the longest
// sequences would hardly ever be used. If such a step comes, it is divided.
int64_t micro_batch_rows(int64_t asked, int64_t usual, int64_t per_step, const LengthFigures& lengths);

// The sizes worth timing: powers of two around the `usual` one that hold the longest sequence and do not exceed what a
// step of `sequences` sequences needs; the usual size first.
std::vector<int64_t> micro_batch_candidates(int64_t longest, int64_t sequences, int64_t usual = kMicroBatchTokens);

// `options.capacity.longest` and `compute_type` are set; for a GPU also `capacity.rows`, around which sizes are tried.
// `fits` says whether an engine may be built. Takes about 5 s at most, or one micro-batch of each size where that is
// longer; never more than the usual size and its neighbours then. A GPU takes longer the first time: it chooses the
// algorithms of each size. What it takes of a GPU's memory, it gives back, workspaces included: there must be no
// engine there meanwhile.
MicroBatchChoice measure_micro_batch(const EngineOptions& options, const std::shared_ptr<const Sequences>& sequences,
                                     const LoaderOptions& loader_options,
                                     const std::function<bool(const EngineOptions&)>& fits);

}  // namespace brisk
