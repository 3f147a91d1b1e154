// Time is a ledger: every nanosecond of wall time belongs to exactly one phase.
//
//   Ledger ledger;                                    // the clock starts in Phase::other
//   { Ledger::Scope scope(ledger, Phase::data_wait); batch = loader.next(); }
//   Ledger::Totals epoch = ledger.totals() - at_epoch_start;
//
// Scopes nest; an inner scope's time is taken away from the outer one. One thread keeps the ledger: the one that
// drives the step. A stamp costs about 25 ns and a step has a few hundred, so it stays on always.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace brisk {

enum class Phase : uint8_t {
  start_up,   // reading the job, the tokenizer, the cache, planning memory
  data_wait,  // the step wanted a batch that was not there yet
  copy,       // batch to the device
  forward_embedding,
  forward_linear,
  forward_attention,
  forward_norm,
  forward_elementwise,
  loss,  // the output product, its softmax, and their gradients, which are one op
  backward_embedding,
  backward_linear,
  backward_attention,
  backward_norm,
  backward_elementwise,
  communication,
  clipping,  // the gradient's norm
  optimizer,
  evaluation,  // and the samples shown with it
  checkpoint,
  logging,
  other,
  count
};

constexpr int kPhases = static_cast<int>(Phase::count);
std::string_view phase_name(Phase phase);

// What an op belongs to; its forward and backward phases follow.
enum class OpFamily : uint8_t { embedding, linear, attention, norm, elementwise, loss };
Phase forward_phase(OpFamily family);
Phase backward_phase(OpFamily family);

class Ledger {
 public:
  struct Totals {
    std::array<int64_t, kPhases> nanoseconds{};
    int64_t stamps = 0;
    bool sampled = false;  // some of it was divided as other steps were (spread)
    double seconds(Phase phase) const { return 1e-9 * static_cast<double>(nanoseconds[static_cast<size_t>(phase)]); }
    double seconds() const;  // of all phases: the wall time
    Totals operator-(const Totals& earlier) const;
    Totals& operator+=(const Totals& other);
  };

  explicit Ledger(Phase first = Phase::other);

  Totals totals();  // everything until now

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

  // Charges the time since the last stamp to the current phase and makes `phase` current; returns what was current.
  // While `hold` is on, phases inside are charged to the held one (evaluation runs forward ops, and is evaluation).
  Phase enter(Phase phase);

  // Charges the time since the last stamp to several phases at once, in proportion to `shares`: of a GPU, whose phases
  // are known from a step now and then that was measured op by op. Without shares it is the current phase's.
  void spread(const Totals& shares);

  // What the host did since `earlier` (waiting for data, copies, logging, other) while a GPU was busy all the time
  // cost nothing: it is divided as `shares`, as the GPU's time is. Evaluation, checkpoints and start-up stay what they
  // are.
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
  Totals totals_;
  Phase current_;
  int64_t last_;
  bool held_ = false;
};

}  // namespace brisk
