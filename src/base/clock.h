// Where time is read from: the system, or a clock that a test turns by hand.
//
//   Ledger ledger(Phase::other, clock);
//   const int64_t start = clock.nanoseconds();
//   const double seconds = clock.seconds_since(start);
#pragma once

#include <chrono>
#include <cstdint>

namespace brisk {

class Clock {
 public:
  virtual int64_t nanoseconds() const = 0;  // never less than before; from when on does not matter
  double seconds_since(int64_t start) const { return 1e-9 * static_cast<double>(nanoseconds() - start); }

 protected:
  ~Clock() = default;  // nobody owns one as such
};

class SystemClock final : public Clock {
 public:
  int64_t nanoseconds() const override {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }
};

inline constexpr SystemClock kSystemClock;

}  // namespace brisk
