#include "train/fit_checks.h"

#include "base/error.h"
#include "base/files.h"
#include "base/machine.h"
#include "base/terminal.h"
#include "train/checkpoint.h"

namespace brisk {

namespace {

constexpr int64_t kProgram = int64_t{100} << 20;        // the program itself, tokenizer and loader included
constexpr int64_t kCardLibraries = int64_t{512} << 20;  // workspaces of products and other ops, kernels

// For the engine: on a card, what is free there less what CUDA and the libraries take.
int64_t available_to(const EngineOptions& options) {
  if (options.device != nullptr && options.device->is_cuda()) return options.device->free_bytes() - kCardLibraries;
  return memory_available() - kProgram;
}

}  // namespace

bool fits_in_memory(const EngineOptions& options) { return plan_memory(options).total() <= available_to(options); }

MemoryPlan refuse_what_cannot_fit(const EngineOptions& options) {
  const MemoryPlan plan = plan_memory(options);
  const int64_t available = available_to(options);
  if (plan.total() <= available) return plan;
  // The largest micro-batch that would fit, if any would.
  EngineOptions smaller = options;
  while (smaller.capacity.rows > smaller.capacity.longest) {
    smaller.capacity.rows = std::max(smaller.capacity.longest, smaller.capacity.rows / 2);
    if (plan_memory(smaller).total() <= available) {
      user_error("this job needs {} of memory and {} are available; \"training.micro_batch_tokens\": {} would fit ({})",
                 format_bytes(static_cast<double>(plan.total())), format_bytes(static_cast<double>(available)),
                 smaller.capacity.rows, format_bytes(static_cast<double>(plan_memory(smaller).total())));
    }
  }
  user_error(
      "this job needs {} of memory ({} for parameters, gradients and optimizer) and {} are available; use a smaller "
      "model.d_model, model.num_layers or model.vocab_size, or \"training.gradient_checkpointing\": 1",
      format_bytes(static_cast<double>(plan.total())), format_bytes(static_cast<double>(plan.state_bytes)),
      format_bytes(static_cast<double>(available)));
}

void refuse_full_disk(const TrainingSetup& setup) {
  const int64_t every = setup.job.training.save_steps > 0 ? setup.job.training.save_steps : setup.steps_per_epoch;
  const int64_t needed = checkpoints_bytes(setup.memory.trained_parameters, setup.job.training.save_total_limit,
                                           setup.total_steps / every + 1);
  // What a run to be resumed has on the disk already is not needed again.
  const int64_t saved =
      std::ssize(list_checkpoints(setup.directory.path())) * checkpoint_bytes(setup.memory.trained_parameters);
  const int64_t there = disk_free_bytes(setup.directory.path()) + saved;
  if (needed <= there) return;
  user_error(
      "{}: the checkpoints of this run need {} and the disk has {} free; free some, choose another --output, or "
      "lower "
      "training.save_total_limit (now {})",
      setup.directory.path(), format_bytes(static_cast<double>(needed)), format_bytes(static_cast<double>(there)),
      setup.job.training.save_total_limit);
}

}  // namespace brisk
