#include "base/ledger.h"

#include <chrono>

namespace brisk {

namespace {

int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

constexpr std::array<std::string_view, kPhases> kPhaseNames = {"start_up",
                                                               "data_wait",
                                                               "copy",
                                                               "forward_embedding",
                                                               "forward_linear",
                                                               "forward_attention",
                                                               "forward_norm",
                                                               "forward_elementwise",
                                                               "loss",
                                                               "backward_embedding",
                                                               "backward_linear",
                                                               "backward_attention",
                                                               "backward_norm",
                                                               "backward_elementwise",
                                                               "communication",
                                                               "clipping",
                                                               "optimizer",
                                                               "evaluation",
                                                               "checkpoint",
                                                               "logging",
                                                               "other"};

constexpr std::array<Phase, 6> kForward = {Phase::forward_embedding,   Phase::forward_linear,
                                           Phase::forward_attention,   Phase::forward_norm,
                                           Phase::forward_elementwise, Phase::loss};
constexpr std::array<Phase, 6> kBackward = {Phase::backward_embedding,   Phase::backward_linear,
                                            Phase::backward_attention,   Phase::backward_norm,
                                            Phase::backward_elementwise, Phase::loss};

}  // namespace

std::string_view phase_name(Phase phase) { return kPhaseNames[static_cast<size_t>(phase)]; }
Phase forward_phase(OpFamily family) { return kForward[static_cast<size_t>(family)]; }
Phase backward_phase(OpFamily family) { return kBackward[static_cast<size_t>(family)]; }

double Ledger::Totals::seconds() const {
  int64_t sum = 0;
  for (const int64_t value : nanoseconds) sum += value;
  return 1e-9 * static_cast<double>(sum);
}

Ledger::Totals Ledger::Totals::operator-(const Totals& earlier) const {
  Totals difference = *this;
  for (size_t i = 0; i < nanoseconds.size(); ++i) difference.nanoseconds[i] -= earlier.nanoseconds[i];
  difference.stamps -= earlier.stamps;
  return difference;
}

Ledger::Totals& Ledger::Totals::operator+=(const Totals& other) {
  for (size_t i = 0; i < nanoseconds.size(); ++i) nanoseconds[i] += other.nanoseconds[i];
  stamps += other.stamps;
  return *this;
}

Ledger::Ledger(Phase first) : current_(first), last_(now()) {}

Phase Ledger::enter(Phase phase) {
  const Phase outer = current_;
  if (held_) return outer;
  const int64_t time = now();
  totals_.nanoseconds[static_cast<size_t>(current_)] += time - last_;
  ++totals_.stamps;
  last_ = time;
  current_ = phase;
  return outer;
}

Ledger::Totals Ledger::totals() {
  const int64_t time = now();
  totals_.nanoseconds[static_cast<size_t>(current_)] += time - last_;
  last_ = time;
  return totals_;
}

double ledger_stamp_cost() {
  Ledger ledger;
  constexpr int kRounds = 20000;
  const int64_t start = now();
  for (int round = 0; round < kRounds; ++round) Ledger::Scope scope(ledger, Phase::logging);
  return static_cast<double>(now() - start) / (2.0 * kRounds);
}

}  // namespace brisk
