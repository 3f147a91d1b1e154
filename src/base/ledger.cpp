#include "base/ledger.h"

#include <algorithm>

namespace brisk {

namespace {

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
  sampled = sampled || other.sampled;
  return *this;
}

Ledger::Ledger(Phase first, const Clock& clock) : clock_(&clock), last_(clock.nanoseconds()), current_(first) {}

Phase Ledger::enter(Phase phase) {
  const Phase outer = current_;
  if (held_) return outer;
  const int64_t time = clock_->nanoseconds();
  totals_.nanoseconds[static_cast<size_t>(current_)] += time - last_;
  ++totals_.stamps;
  last_ = time;
  current_ = phase;
  return outer;
}

void Ledger::spread(const Totals& shares) {
  int64_t all = 0;
  for (const int64_t share : shares.nanoseconds) all += share;
  if (held_ || all <= 0) return;
  const int64_t time = clock_->nanoseconds();
  int64_t left = time - last_;
  const auto elapsed = static_cast<double>(left);
  for (size_t i = 0; i < shares.nanoseconds.size(); ++i) {
    const auto part = std::min(
        left, static_cast<int64_t>(elapsed * static_cast<double>(shares.nanoseconds[i]) / static_cast<double>(all)));
    totals_.nanoseconds[i] += part;
    left -= part;
  }
  totals_.nanoseconds[static_cast<size_t>(current_)] += left;  // what rounding left over
  ++totals_.stamps;
  totals_.sampled = true;
  last_ = time;
}

void Ledger::hide_host(const Totals& earlier, const Totals& shares) {
  int64_t all = 0, hidden = 0;
  for (const int64_t share : shares.nanoseconds) all += share;
  if (held_ || all <= 0) return;
  totals();  // until now
  for (const Phase phase : {Phase::data_wait, Phase::copy, Phase::logging, Phase::other}) {
    const auto i = static_cast<size_t>(phase);
    hidden += totals_.nanoseconds[i] - earlier.nanoseconds[i];
    totals_.nanoseconds[i] = earlier.nanoseconds[i];
  }
  const int64_t whole = hidden;
  for (size_t i = 0; i < shares.nanoseconds.size(); ++i) {
    const auto part =
        std::min(hidden, static_cast<int64_t>(static_cast<double>(whole) * static_cast<double>(shares.nanoseconds[i]) /
                                              static_cast<double>(all)));
    totals_.nanoseconds[i] += part;
    hidden -= part;
  }
  totals_.nanoseconds[static_cast<size_t>(Phase::other)] += hidden;  // what rounding left over
  totals_.sampled = true;
}

Ledger::Totals Ledger::totals() const {
  const int64_t time = clock_->nanoseconds();
  totals_.nanoseconds[static_cast<size_t>(current_)] += time - last_;
  last_ = time;
  return totals_;
}

}  // namespace brisk
