// What an Engine keeps of its programs, for its own files.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "optim/gpu_step.h"
#include "train/engine/engine.h"

namespace brisk {

struct Engine::Run {
  Tape tape;
  LossValues loss;
  std::unique_ptr<Program> program;

  Run(const EngineOptions& options, const Model& model)
      : tape({.activation_type = options.compute_type, .rows = options.row_sets(), .products = options.products}),
        loss(model.loss(tape, options.loss())),
        program(std::make_unique<Program>(tape, ProgramOptions{.checkpoint_every = options.checkpoint_every,
                                                               .backend = options.backend,
                                                               .products = options.products})) {}
};

// On a GPU the step is queued as a whole and waited for once. What recurs with the same sizes is recorded as a graph
// when it comes the second time.
struct Engine::GpuTraining {
  // All that decides what is recorded: whether it is the step's first micro-batch, and of each row set its sizes and
  // which columns it has.
  using Shape = std::vector<int64_t>;
  static Shape shape_of(const DeviceBatch& batch);
  struct Recorded {
    int64_t seen = 0;
    std::unique_ptr<DeviceGraph> graph;
  };

  struct Pass {
    int64_t step = 0;
    int64_t tokens = 0;
  };

  GpuTraining(const ParameterStore& store, const EngineOptions& options, Muon* muon)
      : step(store, options.adamw, muon, options.max_grad_norm), pass_done(store.device().mark()) {}
  bool wants_sample() const;
  // Runs `work`, from its second time on as a graph. Whether nothing was new in it: it had run before, and was not
  // recorded now.
  static bool run(Device& device, Recorded& recorded, bool op_by_op, const std::function<void()>& work);

  GpuStep step;
  std::map<Shape, Recorded> micro_batches;
  Recorded update;
  std::optional<Pass> pass;  // that is queued, and whose update is not
  std::unique_ptr<DeviceMark> pass_done;
  int64_t passes = 0, last_sample = 0;  // so far; the one that was measured op by op last
  int64_t settled = 0;                  // passes in a row, the last ones, in which nothing was new
  std::unique_ptr<PhaseClock> clock;    // of the pass, where it is measured so
  Ledger::Totals shares;                // of the phases in that one
  Ledger::Totals last_totals;           // of the ledger when the last step was done
};

}  // namespace brisk
