// Clocks whose time is what a test says, whoever else uses the machine.
//
//   ManualClock clock;                              // stands still
//   Ledger ledger(Phase::other, clock);
//   clock.advance(0.5);
//
//   const TickingClock ticking(1e-3);               // each reading is a millisecond after the one before
//   train(job, {.clock = &ticking});                // so each step takes a time of its own, the same in every run
#pragma once

#include <cmath>
#include <cstdint>

#include "base/clock.h"

namespace brisk::test {

class ManualClock final : public Clock {
 public:
  int64_t nanoseconds() const override { return now_; }
  void advance(double seconds) { now_ += std::llround(1e9 * seconds); }

 private:
  int64_t now_ = 1'000'000'000;
};

class TickingClock final : public Clock {
 public:
  explicit TickingClock(double seconds) : tick_(std::llround(1e9 * seconds)) {}
  int64_t nanoseconds() const override { return now_ += tick_; }

 private:
  int64_t tick_;
  mutable int64_t now_ = 0;
};

}  // namespace brisk::test
