// The figures and phrases of a diagnosis that text, Markdown, JSON and page share.
//
//   for (const PhaseShare& phase : shares_of(diagnosis.before.stretch.ledger)) ...      // their shares sum to 100
//   for (const JobChange& change : changes_of(diagnosis)) ...                           // key, before, after, why
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "doctor/diagnosis.h"
#include "report/page/checklist.h"
#include "report/read/run_record.h"

namespace brisk {

struct PhaseShare {
  std::string phase;
  double seconds = 0;
  double share = 0;  // percent
};
std::vector<PhaseShare> shares_of(const Ledger::Totals& ledger);  // in the ledger's order, without phases of no time
PhaseSeconds phase_seconds_of(const Ledger::Totals& ledger);

// What this machine could do of the job, and where the difference goes. A part is one or more phases of the ledger; the
// parts' seconds sum to the measured ones, their attainable seconds to those of the attainable tokens/s.
struct Roofline {
  struct Part {
    std::string name;
    double seconds = 0, attainable_seconds = 0;
    double lost() const { return seconds - attainable_seconds; }
  };
  double attainable = 0, achieved = 0;  // tokens/s
  double seconds = 0;
  std::vector<Part> parts;  // that which loses most first
  bool known() const { return attainable > 0 && achieved > 0; }
  double share() const { return known() ? achieved / attainable : 0; }
};
Roofline roofline_of(const Readings& readings);

// A key that the tuned job has otherwise than the one that was given.
struct JobChange {
  std::string key, before, after;  // JSON values
  std::string why;                 // the finding and its gain, or the rule by which it follows; empty: not known
};
std::vector<JobChange> changes_of(const Diagnosis& diagnosis);

double known(double value);  // NaN, which words:: show as a dash, where it is negative
bool is_measured(const Readings& readings);
bool is_measured(const Rung& rung);                  // it ran
const Rung* tuned_rung(const Diagnosis& diagnosis);  // the last that was kept; null: the ladder is empty
int64_t kept_changes(const Diagnosis& diagnosis);
// Nothing was found, tried or left out: there is little to show.
bool is_uneventful(const Diagnosis& diagnosis);
std::vector<std::string> missing_parts(const Diagnosis& diagnosis);  // that an interrupted diagnosis does not have

std::string machine_text(const Readings& readings);
std::string fix_text(const Fix& fix);               // "training.padding": "none"; or the advice
std::string sameness_text(const Finding& finding);  // "changes the maths: ..."
std::string gain_text(double gain);                 // 2.31x
std::string gain_text(const Rung& rung);            // 2.31x [2.27, 2.35]
std::string proof_text(const Rung& rung);
// What must be said of a rung besides its figures: why it was not kept, whether the result stays the same, and where it
// was not measured in turns. Empty of the first.
std::vector<std::string> remarks_of(const Diagnosis& diagnosis, const Rung& rung);
std::string rows_text(const Readings& readings);  // rows computed per second, and how many are padding
// What the processors, the memory, the disk and the GPU did meanwhile, as far as it is known: name and value.
std::vector<std::pair<std::string, std::string>> resources_of(const Readings& readings);
std::string lengths_text(const DataReadings& data);
std::string side_text(const Verification::Side& side);
std::string apply_command(const Diagnosis& diagnosis);

std::vector<Check> vital_checks(const Readings& readings);
std::vector<Check> diagnosis_checks(const Diagnosis& diagnosis);  // those, and memory, GPUs, proofs, quality

}  // namespace brisk
