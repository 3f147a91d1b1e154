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

#include "base/ledger.h"
#include "ops/optimizer/step_state.h"

namespace brisk {

class Communicator;

class ProcessGroup {
 public:
  virtual ~ProcessGroup() = default;

  virtual double sum(double own) = 0;  // of all processes' numbers, the same to the bit in each
  // The sums of the loss and the squared norm of a step, between their measurement and the decision. They lie in device
  // memory; on a GPU it is queued, and recorded in the graph of the update.
  virtual void sum(StepState& step) = 0;

  // The first process's value: a bool, a number or an enumeration that a double can hold.
  template <typename T>
  T broadcast(T own) {
    return static_cast<T>(first(static_cast<double>(own)));
  }

  // What is more than a number goes through it, such as gradients; null of one process alone.
  virtual Communicator* communicator() { return nullptr; }

  // Of this process, and how many there are. The first one writes the run directory and talks.
  int rank();
  int size();
  bool is_first() { return rank() == 0; }
  void wait_for_all();  // until each has come here
  // From now on the time in which this process waits for the others is communication in this ledger.
  virtual void account_in(Ledger* /*ledger*/) {}
  virtual int of_machine() const { return 1; }  // how many of them share this machine's memory

 protected:
  virtual double first(double own) = 0;
};

// This process, alone.
ProcessGroup& single_process();

// Those that a communicator connects.
class ConnectedProcesses final : public ProcessGroup {
 public:
  explicit ConnectedProcesses(Communicator& communicator, int of_machine = 1)
      : communicator_(communicator), of_machine_(of_machine) {}
  double sum(double own) override;
  void sum(StepState& step) override;  // on a CPU
  Communicator* communicator() override { return &communicator_; }
  void account_in(Ledger* ledger) override { ledger_ = ledger; }
  int of_machine() const override { return of_machine_; }

 protected:
  double first(double own) override;

 private:
  Communicator& communicator_;
  int of_machine_;
  Ledger* ledger_ = nullptr;
};

}  // namespace brisk
