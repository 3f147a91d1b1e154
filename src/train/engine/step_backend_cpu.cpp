// Training steps on the CPU: everything is done when its call returns.
#include "base/random.h"
#include "infer/forward/batch_buffer.h"
#include "train/engine/step_backend.h"

namespace brisk {

namespace {

class CpuStepBackend : public StepBackend {
 public:
  CpuStepBackend(Device& device, TrainingProgram& training)
      : StepBackend(device), training_(training), buffer_(device, training.tape) {}

  void begin_pass(const Pass& pass) override {
    batch_.loss_scale = static_cast<float>(pass.scaling) / static_cast<float>(pass.loss_divisor);
    batch_.seed = pass.seed;
    batch_.step = static_cast<uint64_t>(pass.step);
    state().begin_pass(batch_.loss_scale, random_key({pass.seed, batch_.step}));
  }

  void run_micro_batch(const MicroBatch& batch, bool first, bool last, Ledger& ledger) override {
    {
      Ledger::Scope scope(ledger, Phase::copy);
      buffer_.load(batch, batch_.sets);
    }
    batch_.first_of_step = first;
    training_.program.forward(batch_, ledger);
    run_backward(training_.program, batch_, last, ledger);
    Ledger::Scope scope(ledger, Phase::copy);
    state().add_loss(training_.program.value(training_.loss.sums, batch_), first);
  }

  void run_update(const std::function<void()>& work) override { work(); }
  void run_phase(Phase phase, Ledger& ledger, const std::function<void()>& work) override {
    Ledger::Scope scope(ledger, phase);
    work();
  }
  StepNumbers result(Ledger& /*ledger*/) override { return state().result(); }

 private:
  TrainingProgram& training_;
  BatchBuffer buffer_;
  DeviceBatch batch_;
};

}  // namespace

std::unique_ptr<StepBackend> make_cpu_backend(Device& device, TrainingProgram& training) {
  return std::make_unique<CpuStepBackend>(device, training);
}

}  // namespace brisk
