// The ladder: from the job as it is to the tuned one, a fix at a time, each measured in turns with the last rung that was
// kept.
//
//   Climber climber(options, scratch, diagnosis);
//   climber.look();       // the first rung, and what the rules say of it
//   climber.climb();      // the fixes, while the budget lasts
//   climber.finish();     // the spread of repeated runs, the readings of the last rung
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "doctor/diagnosis.h"
#include "doctor/doctor.h"
#include "doctor/ladder/subject.h"
#include "doctor/measure/scratch.h"

namespace brisk {

class Climber {
 public:
  // What it finds goes into `diagnosis` as soon as it is known; `written` and `before.machine` are there.
  Climber(const DoctorOptions& options, const ScratchFolder& scratch, Diagnosis& diagnosis);

  void look();
  void climb();
  void finish();

 private:
  std::unique_ptr<Subject> subject_of(const Job& job, bool keeps_gradient = true, int64_t processes = 1);
  void plan_measuring(const Job& first);
  void measure_course();
  void measure_batch_curve(const Job& first);
  void measure_process_curve();
  Readings readings_of(Subject& subject);
  void fill(Rung& rung, Subject& subject);
  const Finding* next_finding(const std::vector<Finding>& findings);
  void leave_out(const Finding& finding, const std::string& reason);
  void try_what_was_asked();
  void try_fix(const Finding& finding);
  void try_processes();
  void try_course_fix(const Finding& finding, Rung rung);
  bool take_turns(Subject& candidate, Rung& rung);
  void prove(Rung& rung, const Subject& candidate) const;
  void judge_rung(Rung& rung, const Subject& candidate) const;
  void set_losses();
  void measure_spread();
  void sweep_learning_rate();
  void compare_ends();
  const Rung& last_kept() const;
  double cost_per_token(const Subject& subject) const;  // seconds, with what happens between the steps
  double course_per_token() const;
  double block_seconds() const;
  double rung_seconds() const;  // about, of the next
  double left() const;
  void tell(const std::string& what) const;

  const DoctorOptions& options_;
  const ScratchFolder& scratch_;
  Diagnosis& diagnosis_;
  const int64_t started_ = kSystemClock.nanoseconds();
  MeasuringLength length_;
  ReadyFacts facts_;       // of the job as it is written
  CourseReadings course_;  // of the last rung that was kept
  double save_write_seconds_ = 0;
  std::vector<CurvePoint> batch_curve_, process_curve_;
  HistoryReadings history_;
  std::vector<std::unique_ptr<Subject>> subjects_;  // those that were measured, in the order of their rungs
  std::vector<size_t> rung_of_;                     // the place of each in the ladder
  Subject* current_ = nullptr;                      // of the last rung that was kept
  std::vector<std::string> tried_;                  // ids of findings
  int folders_ = 0;
};

}  // namespace brisk
