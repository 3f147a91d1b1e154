// Checkpoints: RUN/checkpoints/step-00000123/ with model.safetensors, optimizer.safetensors and state.json.
//
//   const SaveResult saved = save_checkpoint(run, store, state);     // never throws: training goes on
//   if (!saved.ok()) warn("{}", saved.problem);
//   else prune_checkpoints(run, training.save_total_limit, state.best_step);
//
//   if (auto latest = latest_checkpoint(run)) state = load_checkpoint(*latest, store);   // to go on training
//   load_model(*best_checkpoint(run), store);                                            // to use it
//
// Frozen parameters are not in a checkpoint: checkpoint/fine_tuned.h.
//
// A checkpoint is written as checkpoints/.step-00000123.partial/, every file flushed, and then renamed: the rename is
// the moment it exists, so a process killed at any instant leaves whole checkpoints only. What is about to be deleted
// is renamed to a name with a dot first, for the same reason.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint_state.h"
#include "checkpoint/checkpoint_tensors.h"
#include "tensor/parameter.h"

namespace brisk {

struct SaveResult {
  std::string path;  // of the checkpoint; empty if it failed
  int64_t bytes = 0;
  std::string problem;  // empty if it was saved; otherwise what failed and that earlier checkpoints are kept
  bool ok() const { return problem.empty(); }
};

// `run` is the run directory throughout. A checkpoint of the same step is replaced. That of a store for inference (an
// imported model) has no optimizer state.
SaveResult save_checkpoint(const std::string& run, const ParameterStore& store, const CheckpointState& state);
// The same of tensors that may lie in a copy (checkpoint/checkpoint_tensors.h): then by any thread.
SaveResult save_checkpoint(const std::string& run, const CheckpointTensors& tensors, const CheckpointState& state);

// Removes all but the last `keep` (0: all kept) and that of `best_step` (-1: none). Returns why something could not be
// removed, or nothing.
std::string prune_checkpoints(const std::string& run, int64_t keep, int64_t best_step);

// Removes those of later steps than `step`: what a run that goes back leaves behind. UserError if it cannot.
void remove_checkpoints_after(const std::string& run, int64_t step);

struct CheckpointPath {
  int64_t step = 0;
  std::string path;
};

std::vector<CheckpointPath> list_checkpoints(const std::string& run);  // complete ones, oldest first

// Paths; empty if there is no checkpoint yet.
std::optional<std::string> latest_checkpoint(const std::string& run);
std::optional<std::string> best_checkpoint(const std::string& run);  // by training.best_by; the latest if not evaluated

// Removes what a killed process left half-written or half-deleted. For the process that holds the run's lock.
void remove_stale_checkpoints(const std::string& run);

// Masters and moments into a store allocated for training, and where the run stood. UserError where a file is missing,
// truncated or of another model, before anything in the store has changed; the message names another checkpoint that
// is whole, if there is one. Compute copies, where the store has them, are stale afterwards, here and in load_model.
// `moments`: those that are read, of a process that updates no others; it need not look at the bytes of the whole file if
// another does (`checks_moments`).
CheckpointState load_checkpoint(const std::string& checkpoint, ParameterStore& store, const FlatRange& moments = {},
                                bool checks_moments = true);

// Masters alone, of what is trained; `checkpoint` may also be a model.safetensors file.
void load_model(const std::string& checkpoint, ParameterStore& store);

// UserError if the bytes of its weights are not those that were saved.
void check_model_bytes(const std::string& checkpoint);

bool has_optimizer_state(const std::string& checkpoint);  // false: it can be used, but not resumed

// Disk space of one checkpoint with so many bytes of parameters and moments, and the most that a run which saves
// `saves` times holds at once (the last `save_total_limit`, the best, and one being written).
int64_t checkpoint_bytes(int64_t tensor_bytes);
int64_t checkpoints_bytes(int64_t tensor_bytes, int64_t save_total_limit, int64_t saves);

}  // namespace brisk
