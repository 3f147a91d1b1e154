// Time is a ledger: every nanosecond of wall time belongs to exactly one phase.
//
//   Ledger ledger;                                    // the clock starts in Phase::other
//   { Ledger::Scope scope(ledger, Phase::data_wait); batch = loader.next(); }
//   Ledger::Totals epoch = ledger.totals() - at_epoch_start;
//
// Scopes nest; the time of an inner scope does not count for the outer one. Only the thread that drives the step uses
// the ledger. A stamp costs about 25 ns and a step has a few hundred, so it is always on.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "base/clock.h"

namespace brisk {

enum class Phase : uint8_t {
  start_up,   // reading the job, the tokenizer, the cache, planning memory
  data_wait,  // waiting for the loader's next batch
  copy,       // batch to the device
  forward_embedding,
  forward_linear,
  forward_attention,
  forward_norm,
  forward_elementwise,
  loss,  // output projection, softmax and their gradients: one op
  backward_embedding,
  backward_linear,
  backward_attention,
  backward_norm,
  backward_elementwise,
  communication,
  clipping,  // computing the gradient norm
  optimizer,
  evaluation,  // including samples
  checkpoint,
  logging,
  other,
  count
};

constexpr int kPhases = static_cast<int>(Phase::count);
std::string_view phase_name(Phase phase);

// The kind of an op, which decides its forward and backward phase.
enum class OpFamily : uint8_t { embedding, linear, attention, norm, elementwise, loss };
Phase forward_phase(OpFamily family);
Phase backward_phase(OpFamily family);

class Ledger {
 public:
  struct Totals {
    std::array<int64_t, kPhases> nanoseconds{};
    int64_t stamps = 0;
    bool sampled = false;  // some of it was attributed in proportion to measured steps (spread)
    double seconds(Phase phase) const { return 1e-9 * static_cast<double>(nanoseconds[static_cast<size_t>(phase)]); }
    double seconds() const;  // all phases: the wall time
    Totals operator-(const Totals& earlier) const;
    Totals& operator+=(const Totals& other);
  };

  explicit Ledger(Phase first = Phase::other, const Clock& clock = kSystemClock);

  Totals totals() const;  // everything until now

  class Scope {
   public:
    Scope(Ledger& ledger, Phase phase) : ledger_(ledger), outer_(ledger.enter(phase)) {}
    ~Scope() { ledger_.enter(outer_); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Ledger& ledger_;
    Phase outer_;
  };

  // Charges the time since the last stamp to the current phase and makes `phase` current; returns the previous phase.
  // While a Hold is active, everything is charged to its phase (evaluation runs forward ops, but counts as evaluation).
  Phase enter(Phase phase);

  // Charges the time since the last stamp to several phases in proportion to `shares`. For a GPU, whose phases are only
  // known from the occasional step that is measured op by op. Without shares the time goes to the current phase.
  void spread(const Totals& shares);

  // Re-attributes host time since `earlier` (data_wait, copy, logging, other) that was overlapped by a busy GPU to the
  // GPU's phases, in proportion to `shares`. Evaluation, checkpoints and start-up keep their time.
  void hide_host(const Totals& earlier, const Totals& shares);

  class Hold {
   public:
    Hold(Ledger& ledger, Phase phase) : ledger_(ledger), scope_(ledger, phase), outer_(ledger.held_) {
      ledger.held_ = true;
    }
    ~Hold() { ledger_.held_ = outer_; }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

   private:
    Ledger& ledger_;
    Scope scope_;
    bool outer_;
  };

 private:
  const Clock* clock_;
  mutable Totals totals_;  // until last_: reading them brings them up to now
  mutable int64_t last_;
  Phase current_;
  bool held_ = false;
};

}  // namespace brisk
