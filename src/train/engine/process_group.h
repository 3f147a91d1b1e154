// The processes that train one model together. What they must agree on goes through here and nowhere else: the count of
// a step's targets, the sums a step is decided by, and every choice that reads a clock, a signal or a measurement.
//
//   ProcessGroup& processes = single_process();
//   const double targets = processes.sum(own_targets);
//   if (processes.broadcast(seconds > limit)) save();       // all do what the first process says
#pragma once

#include <cstdint>

#include "ops/optimizer/step_state.h"

namespace brisk {

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

 protected:
  virtual double first(double own) = 0;
};

// This process, alone.
ProcessGroup& single_process();

}  // namespace brisk
