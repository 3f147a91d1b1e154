#include "train/engine/process_group.h"

#include <array>
#include <optional>

#include "base/error.h"
#include "comm/communicator.h"
#include "comm/nccl.h"

namespace brisk {

namespace {

class SingleProcess : public ProcessGroup {
 public:
  double sum(double own) override { return own; }
  void sum_each(std::span<double> /*numbers*/) override {}
  void sum(StepState& /*step*/) override {}

 protected:
  double first(double own) override { return own; }
};

}  // namespace

int ProcessGroup::rank() { return communicator() != nullptr ? communicator()->rank() : 0; }
int ProcessGroup::size() { return communicator() != nullptr ? communicator()->size() : 1; }
void ProcessGroup::wait_for_all() {
  if (communicator() != nullptr) communicator()->barrier();
}

ProcessGroup& single_process() {
  static SingleProcess process;
  return process;
}

namespace {

// While it lives, the ledger's time is communication.
class Communication {
 public:
  explicit Communication(Ledger* ledger) {
    if (ledger != nullptr) scope_.emplace(*ledger, Phase::communication);
  }

 private:
  std::optional<Ledger::Scope> scope_;
};

}  // namespace

ConnectedProcesses::ConnectedProcesses(Communicator& communicator, int of_machine, int local_rank)
    : communicator_(communicator), of_machine_(of_machine), local_rank_(local_rank) {}
ConnectedProcesses::~ConnectedProcesses() = default;

void ConnectedProcesses::connect_gpus() {
  if (!gpus_) gpus_ = open_nccl(communicator_);
}

double ConnectedProcesses::sum(double own) {
  const Communication time(ledger_);
  return communicator_.sum(own);
}

void ConnectedProcesses::sum_each(std::span<double> numbers) {
  const Communication time(ledger_);
  communicator_.sum(numbers);
}

double ConnectedProcesses::first(double own) {
  const Communication time(ledger_);
  return communicator_.first(own);
}

void ConnectedProcesses::sum(StepState& step) {
  BRISK_CHECK(!step.device().is_cuda(), "ranks on a GPU");
  const DeviceAccess access(step.device());
  StepNumbers& numbers = *step.numbers();
  std::array sums = {numbers.squared_norm, numbers.loss_sum, numbers.weight_sum, numbers.correct, numbers.targets};
  communicator_.sum(sums);
  numbers.squared_norm = sums[0];
  numbers.loss_sum = sums[1];
  numbers.weight_sum = sums[2];
  numbers.correct = sums[3];
  numbers.targets = sums[4];
}

}  // namespace brisk
