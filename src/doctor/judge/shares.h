// Shares of an epoch's time, and what the whole gains where a share of it becomes faster (Amdahl). Products of factors are
// never gains: they overlap.
//
//   const EpochShares shares(readings);
//   const double saved = saved_share(shares.of({Phase::optimizer}), 4);    // four times faster
//   finding.predicted_gain = gain_of_saving(saved);
#pragma once

#include <initializer_list>
#include <map>
#include <span>
#include <string>

#include "doctor/readings/readings.h"

namespace brisk {

class EpochShares {
 public:
  explicit EpochShares(const Readings& readings);
  bool known() const { return ledger_seconds_ > 0; }
  double steps() const { return steps_; }  // of all that is not between the steps
  double of(std::span<const Phase> phases) const;
  double of(std::initializer_list<Phase> phases) const { return of(std::span(phases.begin(), phases.size())); }
  double of_steps(std::initializer_list<Phase> phases) const;             // of the steps alone
  double of_course(double seconds_each, double times_in_an_epoch) const;  // 0 where it is not known
  double seconds() const { return seconds_; }                             // of an epoch; 0: not known

 private:
  const Ledger::Totals* ledger_;
  double ledger_seconds_ = 0, seconds_ = 0, steps_ = 1;
};

double saved_share(double share, double speedup);
double gain_of_saving(double saved);  // 1 / (1 - saved)
inline double amdahl(double share, double speedup) { return gain_of_saving(saved_share(share, speedup)); }

std::span<const Phase> forward_phases();   // without the loss
std::span<const Phase> backward_phases();  // likewise
std::span<const Phase> product_phases();   // forward, backward and loss: what a micro-batch is for
std::span<const Phase> compute_phases();   // and clipping and the optimizer: what the threads share

// Of a table of rates by number format; 0: it has none.
double rate_in(const std::map<std::string, double>& rates, const std::string& format);
// Of computing in `format`: by steps of this model where they were timed, else by the rate of large products. 1: not known.
double gain_of_format(const Readings& readings, const std::string& format);
// A GPU multiplies in a format for which it has no tensor cores, and has them for another.
bool leaves_tensor_cores_idle(const Readings& readings);
// A GPU's kernels end before the next ones are launched.
bool is_launch_bound(const StretchReadings& stretch);

// Tokens/s of a curve at `x`, between its points by a straight line and beyond them as at its ends; 0: no curve.
double speed_at(std::span<const CurvePoint> curve, double x);
// The smallest point with at least 95 % of the best speed; nullptr: no curve.
const CurvePoint* knee_of(std::span<const CurvePoint> curve);

}  // namespace brisk
