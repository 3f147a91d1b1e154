// The processes that train one model together. What they must agree on goes through here and nowhere else: the count of
// a step's targets, the sums a step is decided by, and every choice that reads a clock, a signal or a measurement.
//
//   ProcessGroup& processes = single_process();
//   const double targets = processes.sum(own_targets);
//   if (processes.broadcast(seconds > limit)) save();       // all do what the first process says
//
//   ConnectedProcesses all(communicator);                   // several of them, or threads in tests
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/ledger.h"
#include "ops/optimizer/step_state.h"

namespace brisk {

class Communicator;
class Nccl;

class ProcessGroup {
 public:
  virtual ~ProcessGroup() = default;

  virtual double sum(double own) = 0;                 // of all processes' numbers, the same to the bit in each
  virtual void sum_each(std::span<double> numbers) {  // at once where that is one message
    for (double& number : numbers) number = sum(number);
  }
  // The sums of the loss and the squared norm of a step, between their measurement and the decision. Of several processes, on
  // CPUs alone: those on GPUs add them there (ShardTransport::sum).
  virtual void sum(StepState& step) = 0;

  // The first process's value: a bool, a number or an enumeration that a double can hold.
  template <typename T>
  T broadcast(T own) {
    return static_cast<T>(first(static_cast<double>(own)));
  }

  // What is more than a number goes through it, such as gradients; null of one process alone.
  virtual Communicator* communicator() { return nullptr; }
  virtual Nccl* gpus() { return nullptr; }  // what connects their GPUs, where they compute on GPUs (connect_gpus())
  // Collective, of processes that have all chosen their GPU: UserError where NCCL cannot connect them.
  virtual void connect_gpus() {}

  // Of this process, and how many there are. The first one writes the run directory and talks.
  int rank();
  int size();
  bool is_first() { return rank() == 0; }
  void wait_for_all();  // until each has come here
  // From now on the time in which this process waits for the others is communication in this ledger.
  virtual void account_in(Ledger* /*ledger*/) {}
  virtual int of_machine() const { return 1; }  // how many of them share this machine's memory
  virtual int local_rank() const { return 0; }  // of this machine, as its launcher says it

 protected:
  virtual double first(double own) = 0;
};

// While it lives, the time in which this process waits for the others is communication in the ledger.
class CommunicationAccounting {
 public:
  CommunicationAccounting(ProcessGroup& processes, Ledger& ledger) : processes_(processes) {
    processes_.account_in(&ledger);
  }
  ~CommunicationAccounting() { processes_.account_in(nullptr); }
  CommunicationAccounting(const CommunicationAccounting&) = delete;
  CommunicationAccounting& operator=(const CommunicationAccounting&) = delete;

 private:
  ProcessGroup& processes_;
};

// This process, alone.
ProcessGroup& single_process();

// Those that a communicator connects.
class ConnectedProcesses final : public ProcessGroup {
 public:
  explicit ConnectedProcesses(Communicator& communicator, int of_machine = 1, int local_rank = 0);
  ~ConnectedProcesses() override;
  double sum(double own) override;
  void sum_each(std::span<double> numbers) override;
  void sum(StepState& step) override;  // on a CPU
  Communicator* communicator() override { return &communicator_; }
  Nccl* gpus() override { return gpus_.get(); }
  void connect_gpus() override;
  void account_in(Ledger* ledger) override { ledger_ = ledger; }
  int of_machine() const override { return of_machine_; }
  int local_rank() const override { return local_rank_; }

 protected:
  double first(double own) override;

 private:
  Communicator& communicator_;
  int of_machine_, local_rank_;
  Ledger* ledger_ = nullptr;
  std::unique_ptr<Nccl> gpus_;
};

}  // namespace brisk
